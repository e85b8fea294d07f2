"""Order 3: a model on triples learns to count triangles in a few steps, and is tried on larger graphs, where it is worse."""
import matplotlib.pyplot as plt
import networkx as nx
import torch
from anyorder import ConnectedTuples, EquivariantMLP, collate, lift
from anyorder.convert import from_edges

torch.manual_seed(0)

def sample(nodes: int, seed: int):
    graph = nx.gnp_random_graph(nodes, 0.35, seed=seed)
    edges = torch.tensor(list(graph.edges)).reshape(-1, 2)
    triples = lift(from_edges(edges, num_nodes=nodes), 3, ConnectedTuples())
    return triples, sum(nx.triangles(graph).values()) / 3

def batch(nodes: int, seeds: range):
    pairs = [sample(nodes, seed) for seed in seeds]
    return collate([x for x, _ in pairs]), torch.tensor([count for _, count in pairs])

x, y = batch(8, range(80))
model = EquivariantMLP(order_in=3, orders=(3, 0), channels_in=x.channels, channels=16, channels_out=1, classes="pointwise")
optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(1, 201):
    loss = torch.nn.functional.huber_loss(model(x).values.squeeze(1), y)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    if step % 50 == 0:
        print(f"step {step}: loss {loss.item():.4f}")
figure, axis = plt.subplots(figsize=(4, 4))
for nodes, colour in ((8, "#0072b2"), (12, "#e69f00")):
    x, y = batch(nodes, range(1000, 1040))
    with torch.inference_mode():
        answer = model(x).values.squeeze(1)
    print(f"{nodes} nodes, new graphs: mean error {(answer - y).abs().mean():.2f} triangles of {y.mean():.1f}")
    axis.scatter(y, answer, s=14, color=colour, label=f"{nodes} nodes")
axis.set(xlabel="triangles", ylabel="answered")
axis.legend()
figure.savefig("picture.svg")
