"""Training on a user's graphs: a model that fits the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyorder.experiments.graphs.models import GraphMessagePassing, GraphModel, PairTransformer
from anyorder.experiments.graphs.own import OwnGraphs
from anyorder.experiments.graphs.shapes import GraphShapes
from anyorder.experiments.graphs.values import GraphSet
from anyorder.suggest import nearest
from anyorder.training.config import override
from anyorder.training.fit import carry_out
from anyorder.training.jobs import Job
from anyorder.training.machine import Machine
from anyorder.training.records import Record
from anyorder.training.run import Optimiser, Run, Schedule
from anyorder.training.sizing import fit_epochs

MODELS = ("ours", "gin", "gcn", "mlp")
EPOCHS = 200
"""At most, where none are given."""


@dataclass(frozen=True)
class Fit:
    """What a user may ask of a training; what is None follows from the data."""

    model: str = "ours"
    positions: tuple[str, ...] | None = None
    channels: int | None = None
    layers: int | None = None
    dropout: float | None = None
    epochs: int | None = None
    patience: int = 40
    learning_rate: float | None = None
    batch_size: int | None = None


def make_run(task: OwnGraphs, graphs: GraphSet, shapes: GraphShapes, fit: Fit, *, seed: int) -> Run:
    """The run for some data: width, depth, batches and rates follow from its size."""
    several = task.level == "graphs" or (task.level == "nodes" and graphs.num_graphs > 1)
    items = shapes.rows if task.level == "graphs" else graphs.num_graphs
    batch_size = fit.batch_size or (min(32 if items < 2_000 else 64, max(1, items // 4)) if several else 1)
    few = task.level == "nodes" and shapes.rows < 20 * shapes.channels_in
    whole = task.level == "nodes" and graphs.num_graphs == 1  # one step an epoch
    rate = fit.learning_rate or (5e-3 if few else 1e-2 if whole else 2e-3)
    optimiser = Optimiser("adamw", rate, weight_decay=5e-2 if few else 1e-2, clip=5.0)
    schedule = Schedule(epochs=fit.epochs or EPOCHS, warmup_steps=10, patience=fit.patience)
    return Run(task, model_of(fit, shapes, few=few), optimiser, schedule, batch_size=batch_size, seed=seed)


def model_of(fit: Fit, shapes: GraphShapes, *, few: bool) -> GraphModel:
    """The model that is asked for; few rows with many features are met with dropout."""
    if fit.model not in MODELS:
        raise ValueError(f"unknown model {fit.model!r}{nearest(fit.model, MODELS)}")
    bare = shapes.nodes.channels == 0
    chosen: Any = fit.positions if fit.positions is not None else (("degree", "walk") if bare else ())
    drop = fit.dropout if fit.dropout is not None else 0.5 if few else 0.1
    inputs = 0.5 if few else 0.0
    if fit.model == "ours":
        return PairTransformer(chosen, fit.layers, fit.channels, dropout=drop, input_dropout=inputs)
    layers = fit.layers or (3 if shapes.level == "graphs" else 2)
    kind: Any = fit.model
    return GraphMessagePassing(chosen, kind, layers, fit.channels or 64, drop, inputs, dot=kind == "gcn")


def fitted_run(
    task: OwnGraphs, graphs: GraphSet, shapes: GraphShapes, fit: Fit, *, seed: int, settings: Sequence[str] = ()
) -> tuple[Run, float]:
    """The run with the changes of ``settings`` and as many epochs as fit the time where none are given; seconds an epoch."""
    run = make_run(task, graphs, shapes, fit, seed=seed)
    for setting in settings:
        run = override(run, setting)
    if fit.epochs is not None or any(setting.startswith("schedule.epochs") for setting in settings):
        return run, 0.0
    return fit_epochs(run, task.load(seed=seed, data_dir=None))


def job_of(run: Run, data: str, settings: tuple[str, ...] = ()) -> dict[str, Any]:
    """How a training is called among the records."""
    kind = run.model.convolution if isinstance(run.model, GraphMessagePassing) else "ours"
    return {"recipe": "own/graph", "table": "own", "dataset": data, "row": kind, "overrides": settings}


def train(run: Run, folder: Path, machine: Machine, *, name: str) -> Record:
    """Train into a folder."""
    return carry_out(Job(run=run, **job_of(run, name)), folder, machine)
