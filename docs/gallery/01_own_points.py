"""Set to graph on own points: which points belong to the same cluster?"""
import matplotlib.pyplot as plt
import torch
from anyorder import CompleteIndexSet, Encoder, Features

torch.manual_seed(0)

def sets(number: int) -> tuple[Features, torch.Tensor, torch.Tensor]:
    """Sets of 15 points around three centres; a pair belongs together if its points have the same centre."""
    cluster = torch.randint(3, (number, 15))
    centres = torch.rand(number, 3, 2) * 4
    points = centres.gather(1, cluster[..., None].expand(-1, -1, 2)) + 0.25 * torch.randn(number, 15, 2)
    x = Features.of_rows(CompleteIndexSet(1, torch.full((number,), 15)), points.flatten(0, 1))
    return x, (cluster[:, :, None] == cluster[:, None]).flatten().float(), points

model = Encoder(order_in=1, orders=(1, 2), channels_in=2, channels=32, channels_out=1, heads=4, head_channels=8)
optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(1, 151):
    x, same, _ = sets(8)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(model(x).rows.squeeze(1), same)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    if step % 50 == 0:
        print(f"step {step}: loss {loss.item():.3f}")

x, same, points = sets(20)
with torch.inference_mode():
    joined = model(x).rows.squeeze(1) > 0
print(f"pairs that are right on 20 new sets: {(joined == same.bool()).float().mean():.1%}")
figure, axis = plt.subplots(figsize=(4, 4))
for i, j in joined.view(20, 15, 15)[0].nonzero().tolist():
    axis.plot(*points[0, [i, j]].T, color="#d55e00", linewidth=0.8)
axis.scatter(*points[0].T, color="#0072b2", zorder=2)
figure.savefig("picture.svg")
