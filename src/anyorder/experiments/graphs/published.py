"""Published graphs of the table: ten folds of TU sets, ten given splits of wisconsin and film, their links."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from anyorder.datasets import registry
from anyorder.experiments.graphs.columns import Ints
from anyorder.experiments.graphs.readers.geom import read_geom
from anyorder.experiments.graphs.readers.tu import read_tu
from anyorder.experiments.graphs.splits import column_parts, random_parts
from anyorder.experiments.graphs.task import GraphTask
from anyorder.experiments.graphs.values import GraphSet
from anyorder.training.config import configurable
from anyorder.training.parts import RowParts, fold_parts

FOLDS = 10


@configurable
@dataclass(frozen=True)
class TenFolds(GraphTask):
    """A TU set in ten folds, stratified; the seed of a run is its test fold, the next fold chooses the epoch.

    Seeds from 10 on are the folds of another shuffle: on them settings are compared.
    """

    dataset: Literal["MUTAG", "Mutagenicity"] = "MUTAG"
    targets: tuple[str, ...] = ("label",)

    def read(self, data_dir: Path | None) -> GraphSet:
        return read_tu(registry.locate("graphs", part=self.dataset, data_dir=data_dir))

    def split(self, graphs: GraphSet, rows: Ints, seed: int) -> RowParts:
        labels = graphs.graph_columns.categories[rows, 0]
        return fold_parts(rows, labels, folds=FOLDS, fold=seed % FOLDS, seed=seed // FOLDS)


@configurable
@dataclass(frozen=True)
class GivenSplits(GraphTask):
    """Nodes of wisconsin or film on the ten given splits: the seed of a run is its split.

    Seeds from 10 on are random splits of the same shares: on them settings are compared.
    """

    dataset: Literal["wisconsin", "film"] = "wisconsin"
    targets: tuple[str, ...] = ("label",)
    level: Literal["graphs", "nodes", "links"] = "nodes"

    def read(self, data_dir: Path | None) -> GraphSet:
        return read_geom(registry.locate("graphs", part=self.dataset, data_dir=data_dir))

    def hidden(self, graphs: GraphSet) -> tuple[str, ...]:
        return (*self.targets, *(name for name in graphs.node_columns.names if name.startswith("split_")))

    def split(self, graphs: GraphSet, rows: Ints, seed: int) -> RowParts:
        if seed < FOLDS:
            return column_parts(graphs.node_columns, f"split_{seed}", rows)
        labels = graphs.node_columns.categories[rows, 0]
        return random_parts(rows, labels, valid=0.2, test=0.2, seed=seed)


@configurable
@dataclass(frozen=True)
class PublishedLinks(GraphTask):
    """Which nodes of wisconsin or film are linked: 85 % of the links train, 5 % choose the epoch, 10 % test, by the seed."""

    dataset: Literal["wisconsin", "film"] = "wisconsin"
    level: Literal["graphs", "nodes", "links"] = "links"
    choose_by: Literal["loss", "score"] = "score"

    def read(self, data_dir: Path | None) -> GraphSet:
        graphs = read_geom(registry.locate("graphs", part=self.dataset, data_dir=data_dir))
        graphs = graphs.with_edges(np.flatnonzero(graphs.edges[:, 0] != graphs.edges[:, 1]))  # a loop is no link
        hidden = [name for name in graphs.node_columns.names if name.startswith("split_") or name == "label"]
        return graphs.without("nodes", hidden)

    def split(self, graphs: GraphSet, rows: Ints, seed: int) -> RowParts:
        return random_parts(rows, None, valid=0.05, test=0.1, seed=seed)
