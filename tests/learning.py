"""Whether a model learns, by a verdict that does not hang on rounding: medians over seeds, of losses without dropout."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import torch
from torch import Tensor, nn

SEEDS = (0, 1, 2)
Fit = tuple[nn.Module, Callable[[], Tensor]]  # a model and its loss


def descend(model: nn.Module, loss: Callable[[], Tensor], *, steps: int, rate: float) -> None:
    """Go down the loss by Adam."""
    model.train()
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    for _ in range(steps):
        optimiser.zero_grad()
        loss().backward()
        optimiser.step()


def judged(model: nn.Module, loss: Callable[[], Tensor], *, training: bool = False) -> float:
    """The loss, with what is drawn at random (dropout of training, triplets) drawn from one seed."""
    model.train(training)
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(0)
        return loss().item()


def before_and_after(make: Callable[[], Fit], *, steps: int, rate: float, training: bool = False) -> tuple[float, float]:
    """Medians over seeds of the loss at the start and after some steps, without dropout unless ``training``.

    One seed may go wrong on one processor. A model that does not learn goes wrong for all of them on every one.
    """
    first, last = [], []
    for seed in SEEDS:
        torch.manual_seed(seed)
        model, loss = make()
        first.append(judged(model, loss, training=training))
        descend(model, loss, steps=steps, rate=rate)
        last.append(judged(model, loss, training=training))
    return median(first), median(last)


def assert_falls_as_the_gradient_says(model: nn.Module, loss: Callable[[], Tensor], *, length: float = 1e-5) -> None:
    """A short step against the gradient, without dropout and in float64, lowers the loss by its length times the slope."""
    model.double().eval().zero_grad()
    value = loss()
    value.backward()
    moved = [weight for weight in model.parameters() if weight.grad is not None]
    slope = torch.stack([weight.grad.norm() for weight in moved if weight.grad is not None]).norm()
    assert bool(slope.isfinite()) and slope > 0, slope
    with torch.no_grad():
        for weight in moved:
            assert weight.grad is not None
            weight.sub_(length * weight.grad / slope)
        fall = value.detach() - loss()
    torch.testing.assert_close(fall / length, slope, rtol=0.1, atol=0.0, check_dtype=False)
