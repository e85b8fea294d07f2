"""Beyond the paper: node classification on hypergraphs with edges of many sizes. The seed of a run is its split, 0 to 9."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from anyorder.experiments.hypergraphs.models import MODELS, HypergraphModel, HypergraphPropagation
from anyorder.experiments.hypergraphs.task import PublishedNodes
from anyorder.training.run import Optimiser, Recipe, Run, Scale, Schedule
from anyorder.training.tables import Table


@dataclass(frozen=True)
class NodeSetting:
    """A dataset and what suits it."""

    task: PublishedNodes
    channels: int
    optimiser: Optimiser
    quick_epochs: int = 200
    quick_channels: int | None = None
    keep: float = 0.8
    """The share of its own row that a node keeps at the start in ours (light): much where many labels teach its features."""
    neighbours: int = 20
    """How many nodes with similar features a node attends to in ours (light)."""


# 138 or 140 training nodes: narrow, with the weight decay that is customary for these three
FEW_LABELS = Optimiser(learning_rate=1e-2, weight_decay=5e-4)
# half of the nodes are for training
MANY_LABELS = Optimiser(learning_rate=1e-2)

SETTINGS: dict[str, NodeSetting] = {
    "Cora": NodeSetting(PublishedNodes(dataset="cora", normalise="rows"), 64, FEW_LABELS, keep=0.2),
    "Citeseer": NodeSetting(PublishedNodes(dataset="citeseer", normalise="rows"), 64, FEW_LABELS, keep=0.2),
    "Cora co-authorship": NodeSetting(
        PublishedNodes(dataset="cora-coauthorship", normalise="rows"), 64, FEW_LABELS, keep=0.2
    ),
    "zoo": NodeSetting(PublishedNodes(dataset="zoo", normalise="columns"), 64, MANY_LABELS),
    "NTU2012": NodeSetting(PublishedNodes(dataset="ntu2012", normalise="columns"), 256, MANY_LABELS),
    "Mushroom": NodeSetting(PublishedNodes(dataset="mushroom", normalise="columns"), 64, MANY_LABELS),
    "20newsW100": NodeSetting(PublishedNodes(dataset="20newsw100"), 64, MANY_LABELS),
    "house-committees": NodeSetting(PublishedNodes(dataset="house-committees"), 64, MANY_LABELS),
    # much noise in the features: those in a hyperedge with a node say more than it does itself, or those alike
    "walmart-trips": NodeSetting(PublishedNodes(dataset="walmart-trips"), 256, MANY_LABELS, 50, 64, keep=0.4, neighbours=0),
}


def _recipe(setting: NodeSetting, model: HypergraphModel) -> Callable[[Scale], Run]:
    def make(scale: Scale) -> Run:
        quick = scale == "quick"
        channels = setting.quick_channels if quick and setting.quick_channels else setting.channels
        epochs = setting.quick_epochs if quick else 500
        return Run(
            setting.task,
            _fitted(model, channels, setting),
            setting.optimiser,
            Schedule(epochs=epochs, patience=100),
            batch_size=1,
            reduced=_reduced(setting) if quick else "",
        )

    return make


def _fitted(model: Any, channels: int, setting: NodeSetting) -> HypergraphModel:
    fields: dict[str, Any] = {"channels": channels}
    if isinstance(model, HypergraphPropagation):
        fields |= {"keep": setting.keep, "neighbours": setting.neighbours}
    changed: HypergraphModel = replace(model, **fields)
    return changed


def _reduced(setting: NodeSetting) -> str:
    width = f", {setting.quick_channels} channels instead of {setting.channels}" if setting.quick_channels else ""
    name = f"{setting.task.dataset}: " if width else ""
    return f"{name}at most {setting.quick_epochs} epochs instead of 500{width}"


RECIPES = [
    Recipe("hypergraphs", dataset, row, _recipe(setting, model))
    for dataset, setting in SETTINGS.items()
    for row, model in MODELS.items()
]
TABLE = Table(
    name="hypergraphs",
    title="Beyond the paper: node classification on hypergraphs (test accuracy in %; "
    "house-committees and walmart-trips have synthetic features: noisy classes)",
    datasets=tuple(SETTINGS),
    rows=tuple(MODELS),
    metrics=("accuracy",),
    digits=2,
)
