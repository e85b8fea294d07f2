"""Training on a user's graphs: a model that fits the data, the cheap baseline beside it, and what both reach."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from anyorder.experiments.graphs.cheap import CheapBaseline, CheapModel
from anyorder.experiments.graphs.models import GraphMessagePassing, GraphModel, PairTransformer
from anyorder.experiments.graphs.own import OwnGraphs
from anyorder.experiments.graphs.parts import GraphPart
from anyorder.experiments.graphs.shapes import GraphShapes
from anyorder.experiments.graphs.task import GraphTask
from anyorder.experiments.graphs.values import GraphSet
from anyorder.suggest import nearest
from anyorder.training.checkpoints import load_model
from anyorder.training.config import override
from anyorder.training.fit import carry_out
from anyorder.training.jobs import Job
from anyorder.training.machine import Machine
from anyorder.training.records import Record
from anyorder.training.run import Optimiser, Run, Schedule, Splits
from anyorder.training.scores import Score

MODELS = ("ours", "gin", "gcn", "mlp")
EPOCHS, LEAST_EPOCHS, SECONDS = 200, 10, 200.0
"""Epochs at most and at least where none are given, and the time that they are to fit."""
_DRAWS = 1_000


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


@dataclass(frozen=True)
class Outcome:
    """What came of a training: the record, and scores of the model and of the cheap baseline."""

    record: Record
    model: tuple[Score, ...]
    cheap: tuple[Score, ...]
    cheap_name: str

    @property
    def beaten(self) -> bool:
        """Whether the model is ahead of the cheap baseline in the first metric."""
        ours, theirs = self.model[0], self.cheap[0]
        return ours.value < theirs.value if ours.name in ("MAE", "RMSE") else ours.value > theirs.value


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


def seconds_per_epoch(run: Run, splits: Splits) -> float:
    """What an epoch will take, after two steps on this machine; the first one is not counted."""
    model = run.model.build(splits.shapes)
    collate, part = run.task.collate(run.model), splits.train
    count: int = len(part)  # type: ignore[arg-type]
    size = min(run.batch_size, count)
    took = 0.0
    for _ in range(2):
        began = time.perf_counter()
        run.task.loss(model, collate([part[number] for number in range(size)])).backward()
        took = time.perf_counter() - began
    return took * max(1, round(count / size)) * 1.3  # evaluation and optimiser


def fitting_epochs(seconds: float) -> int:
    """As many epochs as fit the time that a first answer may take.

    >>> fitting_epochs(0.1), fitting_epochs(5.0), fitting_epochs(1000.0)
    (200, 40, 10)
    """
    return int(min(EPOCHS, max(LEAST_EPOCHS, SECONDS / max(seconds, 1e-9))))


def fitted_run(
    task: OwnGraphs, graphs: GraphSet, shapes: GraphShapes, fit: Fit, *, seed: int, settings: Sequence[str] = ()
) -> tuple[Run, float]:
    """The run with the changes of ``settings`` and as many epochs as fit the time where none are given; seconds an epoch."""
    run = make_run(task, graphs, shapes, fit, seed=seed)
    for setting in settings:
        run = override(run, setting)
    if fit.epochs is not None or any(setting.startswith("schedule.epochs") for setting in settings):
        return run, 0.0
    seconds = seconds_per_epoch(run, task.load(seed=seed, data_dir=None))
    return replace(run, schedule=replace(run.schedule, epochs=fitting_epochs(seconds))), seconds


def train(run: Run, folder: Path, machine: Machine, *, name: str, settings: tuple[str, ...] = ()) -> Record:
    """Train into a folder."""
    kind = run.model.convolution if isinstance(run.model, GraphMessagePassing) else "ours"
    return carry_out(Job("own/graph", "own", name, kind, run, settings), folder, machine)


def compare(run: Run, folder: Path, record: Record) -> Outcome:
    """Train the cheap baseline beside a trained model and score both on the test part."""
    assert isinstance(run.task, GraphTask) and isinstance(run.model, GraphModel)
    splits = run.task.load(seed=run.seed, data_dir=None)
    _, model = load_model(folder)
    assert isinstance(splits.shapes, GraphShapes)
    cheap = CheapBaseline().build(splits.shapes)
    fit_cheap(cheap, splits.train)
    ours = _scores(run.task, model, run.model, splits.test)
    return Outcome(record, ours, _scores(run.task, cheap, CheapBaseline(), splits.test), cheap.said)


def fit_cheap(model: CheapModel, part: Any) -> None:
    """Fit the cheap baseline to a whole training part."""
    if not model.common:
        model.train()
        model(part.batch(range(len(part)), CheapBaseline().inputs))
    model.eval()


def answers(task: GraphTask, model: nn.Module, config: GraphModel, part: GraphPart, size: int = 256) -> dict[str, Tensor]:
    """What an evaluation keeps of all items of a part."""
    chunks = _chunks(len(part), 1 if task.level == "links" else size)
    with torch.inference_mode():
        collected = [task.evaluate(model, part.batch(numbers, config.inputs)) for numbers in chunks]
    return {name: torch.cat([rows[name] for rows in collected]) for name in collected[0]}


def _scores(task: GraphTask, model: nn.Module, config: GraphModel, part: Any) -> tuple[Score, ...]:
    """Metrics with their intervals, the one that counts first."""
    collected = {name: rows.cpu() for name, rows in answers(task, model, config, part).items()}
    whole = task.metrics(collected)
    names = [name for name in whole if "/" not in name and name != "loss"]
    names.sort(key=lambda name: name != task.score_name)
    random = np.random.default_rng(0)
    drawn: dict[str, list[float]] = {name: [] for name in names}
    rows = len(collected["loss"])
    for _ in range(_DRAWS if rows <= 2_000 else 100):
        chosen = torch.from_numpy(random.integers(0, rows, rows))
        found = task.metrics({name: values[chosen] for name, values in collected.items()})
        for name in names:
            drawn[name].append(found.get(name, np.nan))
    return tuple(Score(name, whole[name], *_interval(drawn[name], whole[name])) for name in names)


def _interval(values: list[float], whole: float) -> tuple[float, float]:
    known = [value for value in values if value == value]
    if not known:
        return whole, whole
    low, high = np.quantile(known, [0.025, 0.975])
    return float(low), float(high)


def _chunks(count: int, size: int) -> Iterator[range]:
    for start in range(0, count, size):
        yield range(start, min(start + size, count))
