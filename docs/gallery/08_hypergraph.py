"""A hypergraph with edges of many sizes: the women of the Deep South study and the events that they came to."""
import matplotlib.pyplot as plt
import networkx as nx
import torch
from anyorder import HypergraphEncoder
from anyorder.layouts.incidence import IncidenceSet

torch.manual_seed(0)
study = nx.davis_southern_women_graph()
women, events = study.graph["top"], study.graph["bottom"]
pairs = torch.tensor([[women.index(w), events.index(e)] for w in women for e in study[w]])
incidence = IncidenceSet.build(pairs[:, 0], pairs[:, 1], num_nodes=len(women), num_edges=len(events))
print("sizes of the events:", incidence.sizes.tolist())
came = torch.zeros(len(women), len(events)).index_put_((pairs[:, 0], pairs[:, 1]), torch.ones(len(pairs)))
circle = torch.tensor([n >= 9 for n in range(len(women))]).long()  # the two circles that the study describes
seen = torch.tensor([0, 1, 12, 13])
hidden = torch.tensor([n for n in range(len(women)) if n not in seen.tolist()])
model = HypergraphEncoder(channels_in=14, channels=16, channels_out=2, layers=2, heads=2, head_channels=8, dropout=0.2)
optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
for _ in range(150):
    loss = torch.nn.functional.cross_entropy(model(came, incidence)[seen], circle[seen])
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
with torch.inference_mode():
    share = model.eval()(came, incidence).softmax(1)[:, 1]
right = ((share > 0.5).long() == circle)[hidden].float().mean()
print(f"four women seen, {len(hidden)} not: {right:.1%} of these in the circle that the study puts them in")
figure, axis = plt.subplots(figsize=(6, 4.4), layout="constrained")
axis.imshow(came, cmap="Greys", aspect="auto", vmax=2)
axis.scatter(torch.full((len(women),), -1), range(len(women)), c=share, cmap="cividis", vmin=0, vmax=1)
axis.set_yticks(range(len(women)), women, fontsize=7)
axis.set_xticks(range(len(events)), events, fontsize=7)
axis.set_title("who came to which event; left: circle that the model answers", fontsize=9)
figure.savefig("picture.svg")
