"""Whether a model learns, by a verdict that does not hang on rounding: two seeds of three, of losses without dropout."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

SEEDS = (0, 1, 2)
EVERY = 10
Fit = tuple[nn.Module, Callable[[], Tensor]]  # a model and its loss


def descend(
    model: nn.Module, loss: Callable[[], Tensor], *, steps: int, rate: float, enough: Callable[[], bool] = lambda: False
) -> None:
    """Go down the loss by Adam, until it is enough; that is looked at now and then."""
    optimiser = torch.optim.Adam(model.parameters(), lr=rate, fused=True)
    for step in range(1, steps + 1):
        model.train()
        optimiser.zero_grad()
        loss().backward()
        optimiser.step()
        if step % EVERY == 0 and enough():
            break


def judged(model: nn.Module, loss: Callable[[], Tensor], *, training: bool = False) -> float:
    """The loss, with what is drawn at random (dropout of training, triplets) drawn from one seed."""
    model.train(training)
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(0)
        return loss().item()


def assert_learns(
    make: Callable[[], Fit], goal: Callable[[float], float], *, steps: int, rate: float, training: bool = False
) -> None:
    """Two seeds of three come below the goal for their first loss within some steps, without dropout unless ``training``.

    One seed may go wrong on one processor. A model that does not learn goes wrong for all of them on every one. A seed ends
    where it has learned, and the third is for two that do not agree.
    """
    verdicts, ends = [], []
    for seed in SEEDS:
        torch.manual_seed(seed)
        model, loss = make()
        value = partial(judged, model, loss, training=training)
        first = value()
        aim = goal(first)
        descend(model, loss, steps=steps, rate=rate, enough=lambda value=value, aim=aim: value() < aim)  # type: ignore[misc]
        ends.append((first, aim, value()))
        verdicts.append(ends[-1][2] < aim)
        if verdicts.count(verdicts[-1]) == 2:
            break
    assert verdicts[-1], f"loss at the start, to be reached, at the end, for each seed: {ends}"


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
