"""Point cloud to links: which pairs of points are each other's neighbours."""

import torch

from anyorder import DenseIndexSet, Encoder, Features

torch.manual_seed(0)
points = torch.rand(16, 10, 2)  # 16 sets of 10 points in the plane
links = (torch.cdist(points, points) < 0.5).float()
mask = torch.ones(16, 10, dtype=torch.bool)  # False where a smaller set is padded
x, pairs = Features(DenseIndexSet(1, mask), points), DenseIndexSet(2, mask)
model = Encoder(order_in=1, orders=(1, 2), channels_in=2, channels=32, channels_out=1, heads=4, head_channels=8)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(100):
    scores = model(x, pairs).values.squeeze(-1)  # (set, point, point)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(scores, links)
    optimizer.zero_grad(), loss.backward(), optimizer.step()
    if step % 25 == 24:
        print(f"step {step + 1}: loss {loss.item():.4f}, right {((scores > 0) == links.bool()).float().mean():.3f}")
