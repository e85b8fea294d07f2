"""Link prediction: which characters of Les Miserables meet, when a tenth of the meetings is hidden?"""
import networkx as nx
import torch
from sklearn.metrics import RocCurveDisplay, roc_auc_score
from anyorder import Encoder, SparseIndexSet
from anyorder.convert import from_networkx

torch.manual_seed(0)
story = nx.les_miserables_graph()
story = nx.convert_node_labels_to_integers(story)
every = torch.tensor(list(story.edges))[torch.randperm(story.number_of_edges())]
none = torch.tensor(list(nx.non_edges(story)))
none = none[torch.randperm(len(none))]
hidden, known, count = every[:25], every[25:], story.number_of_nodes()
story.remove_edges_from(hidden.tolist())
degrees = torch.tensor([float(story.degree[node]) for node in range(count)])
for node in story:
    story.nodes[node]["of"] = [degrees[node].log1p().item(), nx.clustering(story, node)]
x = from_networkx(story, node=("of",))
model = Encoder(order_in=2, orders=(2, 1), channels_in=x.channels, channels=16, channels_out=16, heads=2, head_channels=8)
pair_model = Encoder(order_in=1, orders=(2,), channels_in=16, channels=16, channels_out=1, heads=2, head_channels=8)
optimiser = torch.optim.Adam([*model.parameters(), *pair_model.parameters()], lr=3e-3)

def score(pairs: torch.Tensor) -> torch.Tensor:
    return pair_model(model(x), target=SparseIndexSet(pairs, num_nodes=count)).rows.squeeze(1)

answers = torch.cat([torch.ones(100), torch.zeros(100)])
for _ in range(60):
    some = torch.cat([known[torch.randperm(len(known))[:100]], none[100 + torch.randperm(len(none) - 100)[:100]]])
    loss = torch.nn.functional.binary_cross_entropy_with_logits(score(some), answers)
    optimiser.zero_grad(), loss.backward(), optimiser.step()
with torch.inference_mode():
    found = score(torch.cat([hidden, none[:100]])).numpy()
truth = [1] * len(hidden) + [0] * 100
print(f"25 hidden meetings against 100 pairs that never meet: area under the curve {roc_auc_score(truth, found):.3f}")
RocCurveDisplay.from_predictions(truth, found).figure_.savefig("picture.svg")
