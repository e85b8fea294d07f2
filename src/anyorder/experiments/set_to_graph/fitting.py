"""Training on a user's sets: the models they may choose from, and how they are trained."""

from __future__ import annotations

from dataclasses import dataclass, replace

from anyorder.experiments.set_to_graph import models
from anyorder.experiments.set_to_graph.task import SetsFromFile
from anyorder.layers import SHARP, Softmax
from anyorder.suggest import nearest
from anyorder.training.run import Optimiser, Run, Schedule


@dataclass(frozen=True)
class SetFit:
    """What a user may ask of a training."""

    model: str = "ours"
    layers: int = 4
    channels: int = 64
    dropout: float = 0.0
    learning_rate: float = 1e-3
    batch_size: int = 16
    epochs: int = 30
    patience: int | None = None


def own_run(task: SetsFromFile, fit: SetFit, *, largest: int, seed: int) -> Run:
    """The run for sets of at most so many points."""
    return Run(
        task,
        model_of(fit, largest),
        Optimiser(learning_rate=fit.learning_rate, clip=1.0),
        Schedule(epochs=fit.epochs, warmup_epochs=min(3.0, fit.epochs / 10), decay="linear", patience=fit.patience),
        batch_size=fit.batch_size,
        seed=seed,
    )


def model_of(fit: SetFit, largest: int) -> models.PairModelSettings:
    """The model that is asked for."""
    width, depth = fit.channels, fit.layers
    widths, head = (width,) * depth, (width, width)
    heads = next(number for number in (4, 2, 1) if width % number == 0)
    ours = models.SetEncoder(depth, width, heads, width // heads, head, Softmax(), None, fit.dropout)
    known: dict[str, models.PairModelSettings] = {
        "ours": ours,
        "ours-phi": replace(ours, **SHARP),
        "s2g": models.DeepSetPairs(widths, head),
        "s2g-plus": models.DeepSetPairs(widths, head, basis="full"),
        "siam": models.SiamesePairs(widths, head),
        "siam-3": models.SiameseTriplets(widths),
        "gnn": models.NearestNeighbourGNN(widths, neighbours=5),
        "mlp": models.PaddedMLP(widths, largest),
    }
    if fit.model not in known:
        raise ValueError(f"unknown model {fit.model!r}{nearest(fit.model, known)}")
    return known[fit.model]
