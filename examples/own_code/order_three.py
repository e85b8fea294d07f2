"""Order-3 input: a value for each triple of nodes, to one row per node."""

import torch

from anyorder import DenseIndexSet, Encoder, Features

torch.manual_seed(0)
points = torch.rand(16, 6, 2)  # 16 sets of 6 points
sides = points[:, :, None] - points[:, None]  # (set, node, node, 2)
area = sides[:, :, :, None, 0] * sides[:, :, None, :, 1] - sides[:, :, :, None, 1] * sides[:, :, None, :, 0]
mask = torch.ones(16, 6, dtype=torch.bool)
x = Features(DenseIndexSet(3, mask), area.abs()[..., None])  # areas of triangles, (set, node, node, node, 1)
goal = (points - points.mean(1, keepdim=True)).norm(dim=2)  # how far out a point is
model = Encoder(
    order_in=3, orders=(1, 1), channels_in=1, channels=16, channels_out=1, heads=2, head_channels=8, kernel="relu"
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(20):
    loss = (model(x).values.squeeze(-1) - goal).square().mean()
    optimizer.zero_grad(), loss.backward(), optimizer.step()
    if step % 10 == 9:
        print(f"step {step + 1}: loss {loss.item():.4f}")
