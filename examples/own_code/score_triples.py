"""Score 3-uniform hyperedges: the score of {a, b, c} does not depend on the order of its nodes."""

from itertools import combinations

import torch

from anyorder import Features, SymmetricEncoder, SymmetricIndexSet

torch.manual_seed(0)
nodes = SymmetricIndexSet(torch.arange(12)[:, None], num_nodes=12)
triples = torch.tensor([*combinations(range(12), 3)])
group = torch.arange(12) % 3
labels = ((group[triples] == 0).sum(1) >= 2).float()  # two nodes of the first group
x = Features(nodes, torch.nn.functional.one_hot(group, 3).float() + 0.1 * torch.randn(12, 3))
model = SymmetricEncoder(order_in=1, orders=(1, 3), channels_in=3, channels=32, channels_out=1, heads=4, head_channels=8)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(40):
    scores = model(x, SymmetricIndexSet(triples, num_nodes=12)).values.squeeze(1)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(scores, labels)
    optimizer.zero_grad(), loss.backward(), optimizer.step()
one, other = (model(x, SymmetricIndexSet(triples[:, order], num_nodes=12)).values for order in ([0, 1, 2], [2, 0, 1]))
print(f"loss {loss.item():.4f}, right {((scores > 0) == labels.bool()).float().mean():.3f}")
print(f"scores of reordered triples differ by {(one - other).abs().max().item():.1e}")
