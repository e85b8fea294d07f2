"""The ten lines of the README, and what they promise: renaming the nodes changes nothing."""

import torch

from anyorder import Encoder, Features, RandomFeatures, SparseIndexSet

torch.manual_seed(0)
edges = torch.tensor([[0, 0], [1, 1], [2, 2], [0, 1], [1, 0], [1, 2], [2, 1]])  # loops are nodes
values = torch.randn(7, 5)
x = Features(SparseIndexSet(edges, num_nodes=3), values)  # a graph with 5 channels
model = Encoder(
    order_in=2,
    orders=(2, 2, 0),
    channels_in=5,
    channels=32,
    channels_out=1,
    heads=4,
    head_channels=8,
    kernel=RandomFeatures(kind="relu"),
)
y = model(x)  # order 0: one row for the graph
y.values.sum().backward()
renamed = Features(SparseIndexSet(torch.tensor([2, 0, 1])[edges], num_nodes=3), values)
print(f"output {y.values.item():.6f}, with nodes renamed {model(renamed).values.item():.6f}")
