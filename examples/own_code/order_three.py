"""Order-3 input: values for each triple of nodes, to one row per node."""

import torch

from anyorder import DenseIndexSet, Encoder, Features

torch.manual_seed(0)
points = torch.randn(16, 6, 2)  # 16 sets of 6 points
apart = torch.cdist(points, points)
first, second, third = apart[:, :, :, None], apart[:, None], apart[:, :, None]  # the sides of triangles
sides = torch.stack(torch.broadcast_tensors(first, second, third), -1)  # (set, node, node, node, 3)
x = Features(DenseIndexSet(3, torch.ones(16, 6, dtype=torch.bool)), sides)
goal = apart.amax(2)  # how far the farthest point is
model = Encoder(order_in=3, orders=(1, 1), channels_in=3, channels=16, channels_out=1, heads=2, head_channels=8)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(60):
    loss = (model(x).values.squeeze(-1) - goal).square().mean()
    optimizer.zero_grad(), loss.backward(), optimizer.step()
    if step % 20 == 19:
        print(f"step {step + 1}: loss {loss.item():.4f}")
