"""Training on a user's molecules: a model whose size follows from their number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from anyorder.experiments.molecules import models
from anyorder.experiments.molecules.task import OwnMolecules
from anyorder.layers import INTO_NODES
from anyorder.suggest import nearest
from anyorder.training.run import Optimiser, Run, Schedule

MANY = 20_000
"""From so many molecules on time is short: the model is wider, and atoms alone attend, which by validation loses nothing."""
MODELS = ("ours", "transformer", "mlp_pi", "gin", "gcn", "gin-vn", "gcn-vn", "fingerprint")


@dataclass(frozen=True)
class MoleculeFit:
    """What a user may ask of a training; layers and channels that are None follow from the number of molecules."""

    model: str = "ours"
    layers: int | None = None
    channels: int | None = None
    dropout: float = 0.1
    learning_rate: float = 1e-3
    batch_size: int = 32
    epochs: int = 100
    patience: int | None = None


def size_for(rows: int) -> tuple[int, int]:
    """Layers and channels for so many molecules to train on.

    >>> size_for(500), size_for(2_000), size_for(100_000)
    ((2, 32), (3, 32), (4, 64))
    """
    return (2, 32) if rows < 1_000 else (3, 32) if rows < MANY else (4, 64)


def own_run(task: OwnMolecules, fit: MoleculeFit, *, rows: int, seed: int) -> Run:
    """The run for so many molecules to train on."""
    warmup = min(2.0, fit.epochs / 10)
    return Run(
        task,
        model_of(fit, rows),
        Optimiser("adamw", fit.learning_rate, weight_decay=0.01, clip=5.0),
        Schedule(epochs=fit.epochs, warmup_epochs=warmup, decay="linear", patience=fit.patience),
        batch_size=fit.batch_size,
        eval_batch_size=256,
        seed=seed,
    )


def model_of(fit: MoleculeFit, rows: int) -> models.MoleculeModel:
    """The model that is asked for."""
    layers, channels = size_for(rows)
    width = fit.channels or channels
    size: dict[str, Any] = {"layers": fit.layers or layers, "channels": width, "dropout": fit.dropout}
    heads = max(1, width // 16)
    if fit.model == "ours":
        size |= {"heads": heads, "head_channels": 8, "pool_heads": heads, "pool_head_channels": 16}
        return models.MoleculeEncoder(**size, **(INTO_NODES if rows >= MANY else {}))
    if fit.model == "transformer":
        return models.MoleculeTransformer(**size, heads=heads, head_channels=16)
    if fit.model == "mlp_pi":
        return models.MoleculeMLP(**size)
    if fit.model == "fingerprint":
        return models.MoleculeFingerprint(**size)
    if fit.model not in MODELS:
        raise ValueError(f"unknown model {fit.model!r}{nearest(fit.model, MODELS)}")
    kind: Any = fit.model.removesuffix("-vn")
    return models.MoleculeMessagePassing(**size, convolution=kind, virtual_node=fit.model.endswith("-vn"))
