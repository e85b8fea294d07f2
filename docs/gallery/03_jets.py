"""Jets: simulate collisions, and learn which tracks come from the same vertex."""
import matplotlib.pyplot as plt
import numpy as np
import torch
from anyorder import CompleteIndexSet, Encoder, Features
from anyorder.experiments.set_to_graph.jet_events import EventSettings, simulate_events
from anyorder.experiments.set_to_graph.jets import normalisation

torch.manual_seed(0)
jets = simulate_events(150, 1, EventSettings())
jets = jets.normalised(normalisation(jets))
print(f"{len(jets)} jets, {jets.num_tracks.mean():.1f} tracks each")

def batch(numbers: np.ndarray) -> tuple[Features, torch.Tensor]:
    some = jets.select(numbers)
    x = Features.of_rows(CompleteIndexSet(1, torch.tensor(some.num_tracks)), torch.tensor(some.features))
    return x, torch.cat([torch.tensor(j.vertex[:, None] == j.vertex[None]).flatten() for j in some]).float()

order = np.random.default_rng(0).permutation(len(jets))
train, test = order[len(order) // 5 :], order[: len(order) // 5]
model = Encoder(order_in=1, orders=(1, 2), channels_in=10, channels=32, channels_out=1, heads=4, head_channels=8)
optimiser = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(200):
    x, same = batch(np.random.default_rng(step).choice(train, 16))
    loss = torch.nn.functional.binary_cross_entropy_with_logits(model(x).rows.squeeze(1), same)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
x, same = batch(test)
with torch.inference_mode():
    score = model(x).rows.squeeze(1)
print(f"test pairs that are right: {((score > 0) == same.bool()).float().mean():.1%}, all joined: {same.mean():.1%}")
figure, axis = plt.subplots(figsize=(5, 3.4))
for value, name, colour in ((1, "same vertex", "#0072b2"), (0, "other vertices", "#d55e00")):
    axis.hist(score[same == value], bins=30, density=True, alpha=0.6, label=name, color=colour)
axis.set(xlabel="score of a pair of tracks", ylabel="density")
axis.legend()
figure.savefig("picture.svg")
