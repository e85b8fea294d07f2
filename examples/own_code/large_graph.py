"""Nodes of one large graph: linear time, plans made once, rows for all nodes."""

import torch

from anyorder.pyg import GraphTransformer

torch.manual_seed(0)
nodes, classes = 2_000, 4
labels = torch.randint(classes, (nodes,))
ends = torch.randint(nodes, (2, 24_000))
ends = ends[:, (labels[ends[0]] == labels[ends[1]]) & (ends[0] != ends[1])]  # friends are of one kind
edge_index = torch.cat([ends, ends.flip(0)], 1).unique(dim=1)
x = torch.randn(nodes, 16) + 0.5 * torch.nn.functional.one_hot(labels, 16)
train = torch.rand(nodes) < 0.1
model = GraphTransformer(16, 16, classes, num_layers=1, heads=2, level="node", kernel="relu")
optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)
for _ in range(10):
    scores = model(x, edge_index)  # the same edge_index: its index set and plans are kept
    loss = torch.nn.functional.cross_entropy(scores[train], labels[train])
    optimizer.zero_grad(), loss.backward(), optimizer.step()
right = (scores.argmax(1) == labels)[~train].float().mean()
print(f"{edge_index.shape[1]} edges, loss {loss.item():.4f}, right on other nodes {right:.3f}")
