"""A run is a value: task, model, optimiser, schedule, scale and seed."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from torch import Tensor, nn
from torch.utils.data import Dataset

from anyorder.errors import InputError
from anyorder.layers import Elu, KernelsByKind, LearnedFeatures, RandomFeatures, Softmax
from anyorder.training.config import configurable
from anyorder.training.shapes import Shapes

for _kernel in (Softmax, RandomFeatures, LearnedFeatures, Elu, KernelsByKind):
    configurable(_kernel)

Scale = Literal["quick", "medium", "full"]
SCALES: tuple[Scale, ...] = ("quick", "medium", "full")


def check_least(value: Any, least: dict[str, int]) -> None:
    """Refuse settings below their least value; None is allowed where it is there."""
    for name, bound in least.items():
        given = getattr(value, name)
        if given is not None and not given >= bound:
            raise ValueError(f"{type(value).__name__}.{name} must be at least {bound}, got {given}")


@configurable
@dataclass(frozen=True)
class Optimiser:
    """Adam, AdamW or RMSprop."""

    name: Literal["adam", "adamw", "rmsprop"] = "adam"
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    clip: float | None = None
    """Largest norm of the gradient."""
    average: float = 0.0
    """Decay of a moving average of the weights, which is evaluated and kept in their place, such as 0.99; 0: none."""

    def __post_init__(self) -> None:
        if not 0 <= self.average < 1:
            raise ValueError(f"Optimiser.average must be at least 0 and below 1, got {self.average}")
        if not self.learning_rate > 0 or not self.weight_decay >= 0 or (self.clip is not None and not self.clip > 0):
            raise ValueError(f"learning_rate and clip must be positive and weight_decay at least 0, got {self}")


@configurable
@dataclass(frozen=True)
class Schedule:
    """How long to train and how the learning rate goes: linear warm-up, then constant or linear to 0, per step."""

    epochs: int = 100
    max_steps: int | None = None
    warmup_steps: int = 0
    warmup_epochs: float = 0.0
    decay: Literal["none", "linear"] = "none"
    patience: int | None = None
    """Stop after so many evaluations without gain in the selection metric."""
    evaluate_every: int = 1
    """Epochs between evaluations; the last epoch has one in any case."""

    def __post_init__(self) -> None:
        least = {"epochs": 0, "max_steps": 1, "warmup_steps": 0, "warmup_epochs": 0, "patience": 1, "evaluate_every": 1}
        check_least(self, least)

    def factor(self, step: int, steps_per_epoch: int) -> float:
        """The learning rate of a step as a share of its maximum.

        >>> [round(Schedule(epochs=2, warmup_steps=2, decay="linear").factor(step, 3), 2) for step in range(6)]
        [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]
        """
        total = min(self.max_steps or math.inf, self.epochs * steps_per_epoch)
        warmup = self.warmup_steps or round(self.warmup_epochs * steps_per_epoch)
        if step < warmup:
            return (step + 1) / warmup
        if self.decay == "none":
            return 1.0
        return max(0.0, (total - step) / max(1, total - warmup))


@dataclass(frozen=True)
class Selection:
    """Which evaluation is kept: the one with the best value of a metric on the validation (or published: test) set."""

    metric: str
    mode: Literal["max", "min"]


@dataclass(frozen=True)
class Splits:
    """The parts of a dataset, and what a model must know of it, which is kept with the model."""

    train: Dataset[Any]
    valid: Dataset[Any] | None
    test: Dataset[Any]
    shapes: Shapes = field(default_factory=Shapes)
    digest: str = field(default="", kw_only=True)
    """Of the data as they were read: a training does not go on with others."""


@dataclass(frozen=True)
class PredictRequest:
    """What a user asks of a trained model: a file in, a file out, and what some tasks take besides."""

    folder: Path
    """Of the trained model."""
    input: Path | None = None
    output: Path | None = None
    options: dict[str, str] = field(default_factory=dict)
    data_dir: Path | None = None
    """Folder of the datasets."""


@dataclass(frozen=True)
class ExplainRequest:
    """What a user wants to see of a model's attention: a layer (from 1) and a class, or the last and all."""

    folder: Path
    output: Path
    layer: int | None = None
    cls: str | None = None
    options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Answers:
    """What somebody answers for a part: who, and what ``Task.evaluate`` keeps of it."""

    title: str
    collected: dict[str, Tensor]


@dataclass(frozen=True)
class Task(ABC):
    """Data, loss and metrics of an experiment. Subclasses are frozen dataclasses of their settings."""

    shapes_type: ClassVar[type[Shapes]] = Shapes
    """What it tells models of its data: ``Splits.shapes`` is one of these."""
    predict_options: ClassVar[tuple[str, ...]] = ()
    """What ``predict`` takes besides its input and output."""
    kept_files: ClassVar[tuple[str, ...]] = ()
    """What ``conclude`` puts beside the weights."""
    explain_options: ClassVar[tuple[str, ...]] = ()
    """What ``explain`` takes besides layer, class and output."""

    @property
    def selection(self) -> Selection | None:
        """What chooses the epoch; None keeps the last."""
        return None

    @abstractmethod
    def load(self, *, seed: int, data_dir: Path | None) -> Splits:
        """Read or generate the data."""

    @abstractmethod
    def collate(self, model: ModelConfig) -> Callable[[Sequence[Any]], Any]:
        """What makes a batch of items; runs in loader workers."""

    @abstractmethod
    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        """The mean training loss over the items of a batch."""

    @abstractmethod
    def evaluate(self, model: nn.Module, batch: Any) -> dict[str, Tensor]:
        """What the metrics need of a batch: tensors with one row per item, which are put one below the other."""

    @abstractmethod
    def metrics(self, collected: dict[str, Tensor]) -> dict[str, float]:
        """Metrics of a whole split. ``part/metric`` belongs to the part of the dataset with that name."""

    def whole_metrics(self, collected: dict[str, Tensor]) -> dict[str, float]:
        """Those without a part, where they are cheaper by themselves: intervals are made of many redraws."""
        return self.metrics(collected)

    @property
    def without_test(self) -> bool:
        """Whether own data have no test part: the same task with ``everything=True`` trains on all rows."""
        return False

    @property
    def score_name(self) -> str:
        """The metric that counts in the last table of own data; by default the one that chooses the epoch."""
        return "" if self.selection is None else self.selection.metric

    def describe(self, splits: Splits) -> list[str]:
        """What is in the data, a line each, for the user who is about to train on it."""
        sizes = [len(part) for part in (splits.train, splits.valid or (), splits.test)]  # type: ignore[arg-type]
        return [f"{sizes[0]:,} to train on, {sizes[1]:,} to validate, {sizes[2]:,} to test"]

    def conclude(self, run: Run, model: nn.Module, splits: Splits, folder: Path) -> list[Answers]:
        """Who answers the test part of own data: the model first, cheap answers after it; empty for the model alone."""
        return []

    def beside(self, parts: Sequence[str]) -> list[str]:
        """Those parts of the metrics that are cheap answers to the same question."""
        return []

    def from_history(self, history: Sequence[dict[str, float]]) -> dict[str, float]:
        """Metrics that are told from all evaluations; they stand beside those of the test set."""
        return {}

    def predict(self, model: nn.Module, shapes: Any, request: PredictRequest) -> str:
        """Answer a request for predictions and say what was written where."""
        raise ValueError(f"models of {type(self).__name__} have no predictions to write")

    def program(self, model: nn.Module, shapes: Any) -> tuple[nn.Module, dict[str, Tensor]]:
        """A module from tensors to a tensor, and an example of its inputs, whose first axis may have any length."""
        raise InputError(
            f"models of {type(self).__name__} cannot be exported as a program: expected a model of sets of points"
        )

    def explain(self, run: Run, model: nn.Module, shapes: Any, request: ExplainRequest) -> str:
        """Draw where a model looks, and say it."""
        raise ValueError(f"models of {type(self).__name__} have no attention to draw: explain knows graphs and molecules")

    def num_items(self, batch: Any) -> int:
        """Over how many items ``loss`` averages; processes weigh their gradients by it."""
        return len(batch)

    def batches(self, data: Dataset[Any], *, batch_size: int, seed: int, shuffle: bool, rank: int, world: int) -> Any:
        """How items are put together: a batch sampler with ``set_epoch``."""
        from anyorder.training.sampling import GlobalBatches

        return GlobalBatches(
            len(data),  # type: ignore[arg-type]
            batch_size=batch_size,
            seed=seed,
            shuffle=shuffle,
            rank=rank,
            world=world,
        )


class ChoosesThenTrainsOnAll(Task):
    """Own data without a test part: with ``everything``, a setting of the task, all rows train and nothing is chosen.

    It stands before the task that it is mixed into: ``class OwnRows(ChoosesThenTrainsOnAll, RowTask)``.
    """

    everything: bool

    @property
    def selection(self) -> Selection | None:
        return None if self.everything else super().selection

    def load(self, *, seed: int, data_dir: Path | None) -> Splits:
        splits = super().load(seed=seed, data_dir=data_dir)  # type: ignore[safe-super]
        return replace(splits, valid=None) if self.everything else splits


class DirectTask(Task):
    """A task that is not one training with a test at its end: it carries out its jobs and makes the record itself."""

    @abstractmethod
    def carry_out(self, job: Any, folder: Path, machine: Any, *, fresh: bool) -> Any:
        """Do a job, or go on with it, in its folder; returns the record."""

    def load(self, *, seed: int, data_dir: Path | None) -> Splits:
        raise NotImplementedError(f"{type(self).__name__} has no splits")

    def collate(self, model: ModelConfig) -> Callable[[Sequence[Any]], Any]:
        raise NotImplementedError(f"{type(self).__name__} has no batches")

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no loss")

    def evaluate(self, model: nn.Module, batch: Any) -> dict[str, Tensor]:
        raise NotImplementedError(f"{type(self).__name__} has no batches")

    def metrics(self, collected: dict[str, Tensor]) -> dict[str, float]:
        raise NotImplementedError(f"{type(self).__name__} makes its record itself")


@dataclass(frozen=True)
class ModelConfig(ABC):
    """The settings of a model. Subclasses are frozen dataclasses."""

    @abstractmethod
    def build(self, shapes: Any) -> nn.Module:
        """Make the model for a dataset of these shapes, which are of the task's ``shapes_type``."""


@configurable
@dataclass(frozen=True)
class Run:
    """Everything that determines a result."""

    task: Task
    model: ModelConfig
    optimiser: Optimiser = field(default_factory=Optimiser)
    schedule: Schedule = field(default_factory=Schedule)
    batch_size: int = 32
    """Over all processes and accumulated steps together."""
    accumulate: int = 1
    eval_batch_size: int | None = None
    scale: Scale = "full"
    seed: int = 0
    reduced: str = field(default="", compare=False)
    """What the scale leaves out of the protocol, in words: no setting, so that a run resumes when they change."""

    def __post_init__(self) -> None:
        check_least(self, {"batch_size": 1, "accumulate": 1, "eval_batch_size": 1, "seed": 0})


@dataclass(frozen=True)
class Recipe:
    """One row of a table: how to make its run on each scale."""

    table: str
    dataset: str
    row: str
    make: Callable[[Scale], Run]
    scales: tuple[Scale, ...] = ("quick", "full")

    @property
    def name(self) -> str:
        """Computed from the row.

        >>> Recipe("chains", "Chains", "Ours (S, phi) w/o global", make=None).name
        'chains/ours-s-phi-without-global'
        >>> Recipe("delaunay", "Delaunay (50)", "S2G+", make=None).name
        'delaunay/50/s2g-plus'
        """
        parts = [slug(self.table)]
        rest = re.sub(re.escape(self.table), "", self.dataset, flags=re.IGNORECASE)
        if slug(rest):
            parts.append(slug(rest))
        return "/".join([*parts, slug(self.row)])


def slug(text: str) -> str:
    """A name as part of a path.

    >>> slug("Ours (S, phi) w/o global"), slug("S2G+")
    ('ours-s-phi-without-global', 's2g-plus')
    """
    text = text.lower().replace("w/o", "without").replace("50/25/25", "half").replace("+", " plus")
    return re.sub(r"[^a-z0-9]+", "-", text).strip("-")
