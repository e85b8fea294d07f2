"""Classes and numbers of graphs, nodes and links: the task at its three levels."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from torch import Tensor, nn

from anyorder.arrays import digest
from anyorder.experiments.graphs.batch import GraphArrays, GraphBatch
from anyorder.experiments.graphs.columns import Columns, Ints
from anyorder.experiments.graphs.encoding import Encoding
from anyorder.experiments.graphs.goals import goal_shapes, score, target_rows
from anyorder.experiments.graphs.links import LINKED, link_parts
from anyorder.experiments.graphs.models import GraphModel
from anyorder.experiments.graphs.parts import GraphItem, GraphPart, LinkQuestion, Links, SomeNodes, WholeGraphs
from anyorder.experiments.graphs.shapes import GoalKind, GoalShapes, GraphShapes
from anyorder.experiments.graphs.values import GraphSet, Level
from anyorder.training.parts import RowParts
from anyorder.training.run import Answers, ModelConfig, Run, Selection, Splits, Task
from anyorder.training.shapes import Shapes


@dataclass(frozen=True)
class CollateGraphs:
    """Items of a part to what a model reads."""

    model: GraphModel

    def __call__(self, items: Sequence[GraphItem]) -> GraphBatch:
        return items[0].part.batch([item.number for item in items], self.model.inputs)


@dataclass(frozen=True)
class GraphTask(Task):
    """Targets of graphs, of nodes or of edges; without targets at the level of links, which pairs are linked."""

    shapes_type: ClassVar[type[Shapes]] = GraphShapes

    level: Level = "graphs"
    targets: tuple[str, ...] = ()
    goal: GoalKind = "classification"
    choose_by: Literal["loss", "score"] = "loss"
    """What chooses the epoch on the validation part: the loss, or the first metric."""

    @abstractmethod
    def read(self, data_dir: Path | None) -> GraphSet:
        """The graphs with all their columns."""

    @abstractmethod
    def split(self, graphs: GraphSet, rows: Ints, seed: int) -> RowParts:
        """The rows to train on, choose by and test on, among those whose targets are there."""

    @property
    def names(self) -> tuple[str, ...]:
        """What is asked."""
        return self.targets or (LINKED,)

    @property
    def score_name(self) -> str:
        return "MAE" if self.goal == "regression" else "accuracy" if self.targets else "AUC"

    @property
    def selection(self) -> Selection | None:
        if self.choose_by == "loss":
            return Selection("loss", "min")
        return Selection(self.score_name, "min" if self.goal == "regression" else "max")

    def load(self, *, seed: int, data_dir: Path | None) -> Splits:
        graphs = self.read(data_dir)
        parts = self.parts(graphs, seed)
        shapes = self.shapes(graphs, parts)
        train, valid, test = self.datasets(graphs, parts, shapes, seed)
        rows = (parts.train, parts.valid, parts.test)
        return Splits(train, valid, test, shapes, digest=digest(*graphs.arrays(), *rows))

    def parts(self, graphs: GraphSet, seed: int) -> RowParts:
        """The parts of the rows that have targets."""
        links = np.flatnonzero(graphs.edges[:, 0] != graphs.edges[:, 1])  # a loop is none
        rows = known_rows(graphs.columns(self.level), self.targets) if self.targets else links
        if len(rows) == 0:
            what = f"{self.level} with the target {self.targets[0]!r}" if self.targets else "edges"
            raise ValueError(f"there are no {what}")
        return self.split(graphs, rows, seed).check(self.level)

    def inputs(self, graphs: GraphSet) -> GraphSet:
        """The graphs without what is asked."""
        return graphs.without(self.level, self.hidden(graphs)) if self.targets else graphs

    def hidden(self, graphs: GraphSet) -> tuple[str, ...]:
        """Columns of the level that are no input."""
        return self.targets

    def shapes(self, graphs: GraphSet, parts: RowParts) -> GraphShapes:
        """What a model must know of the data."""
        inputs = self.inputs(graphs)
        rows = inputs.node_columns
        if self.level == "graphs":
            rows = rows.take(np.isin(graphs.node_graph, parts.train))
        edges = inputs.edge_columns.take(_training_edges(self, graphs, parts))
        goal = GoalShapes("classification", (LINKED,), classes=(("no", "yes"),))
        if self.targets:
            goal = goal_shapes(graphs.columns(self.level), self.targets, self.goal, parts.train)
        return GraphShapes(
            level=self.level,
            goal=goal,
            nodes=Encoding.fit(rows),
            edges=Encoding.fit(edges),
            loops=bool((graphs.edges[:, 0] == graphs.edges[:, 1]).any()),
            directed=graphs.directed,
            rows=len(parts.train),
            digest=_digest(graphs, parts),
        )

    def datasets(self, graphs: GraphSet, parts: RowParts, shapes: GraphShapes, seed: int) -> list[GraphPart]:
        """Training, validation and test parts."""
        inputs = self.inputs(graphs)
        if not self.targets:
            return list(link_parts(inputs, parts, shapes, seed=seed))
        arrays = GraphArrays(inputs, shapes)
        targets = target_rows(graphs.columns(self.level), shapes.goal, strict=False)
        self._check_classes(graphs, parts)
        chosen = (parts.train, parts.valid, parts.test)
        if self.level == "links":
            return [Links([LinkQuestion(arrays, graphs.edges[rows], targets[rows])]) for rows in chosen]
        kind = WholeGraphs if self.level == "graphs" else SomeNodes
        return [kind(arrays, rows, targets, fixed=place > 0) for place, rows in enumerate(chosen)]

    def _check_classes(self, graphs: GraphSet, parts: RowParts) -> None:
        """Refuse a class that only the held-back parts have."""
        if self.goal == "classification":
            columns = graphs.columns(self.level)
            for name in self.targets:
                seen = set(columns.take(parts.train).texts(name))
                for part in ("valid", "test"):
                    new = {*columns.take(getattr(parts, part)).texts(name)} - seen - {None}
                    if new:
                        known = sorted(text for text in seen if text is not None)
                        raise ValueError(
                            f"class {min(map(str, new))!r} of {name!r} is in the {part} part only; the training part has "
                            f"{known}: leave its rows out, or use another --seed"
                        )

    def collate(self, model: ModelConfig) -> Callable[[Sequence[Any]], Any]:
        if not isinstance(model, GraphModel):
            raise TypeError(f"{type(model).__name__} is no model of graphs")
        return CollateGraphs(model)

    def loss(self, model: nn.Module, batch: GraphBatch) -> Tensor:
        out, targets = model(batch)
        losses: Tensor = model.goal.losses(out, targets)  # type: ignore[union-attr,operator]
        return losses.mean()

    def evaluate(self, model: nn.Module, batch: GraphBatch) -> dict[str, Tensor]:
        out, targets = model(batch)
        answers = model.goal.answers(out)  # type: ignore[union-attr,operator]
        losses = model.goal.losses(out, targets)  # type: ignore[union-attr,operator]
        return {**{f"answer {n}": answer for n, answer in enumerate(answers)}, "target": targets, "loss": losses}

    def conclude(self, run: Run, model: nn.Module, splits: Splits, folder: Path) -> list[Answers]:
        """The model, and the cheap baseline that is fitted to the training part."""
        from anyorder.experiments.graphs.cheap import CheapBaseline, fit_cheap
        from anyorder.training.outcome import collect

        assert isinstance(splits.shapes, GraphShapes)
        cheap = CheapBaseline().build(splits.shapes)
        fit_cheap(cheap, splits.train)
        theirs = collect(replace(run, model=CheapBaseline()), cheap, splits.test)
        return [Answers("model", collect(run, model, splits.test)), Answers(f"baseline: {cheap.said}", theirs)]

    def metrics(self, collected: dict[str, Tensor]) -> dict[str, float]:
        answers = [collected[f"answer {n}"] for n in range(len(self.names))]
        found = score(self.goal, self.names, answers, collected["target"])
        return {**found, "loss": float(collected["loss"].double().mean())}


def known_rows(columns: Columns, names: Sequence[str]) -> Ints:
    """Rows where some target is there."""
    for name in names:
        if name not in columns.names:
            there = f"expected one of {list(columns.names)}" if columns.names else "there are none"
            raise ValueError(f"there is no column {name!r} to predict: {there}")
    known = np.array([[text is not None for text in columns.texts(name)] for name in names])
    return np.flatnonzero(known.any(0)) if len(names) else np.arange(len(columns))


def _training_edges(task: GraphTask, graphs: GraphSet, parts: RowParts) -> Ints:
    if task.level == "graphs":
        return np.flatnonzero(np.isin(graphs.edge_graph, parts.train))
    return parts.train if task.level == "links" and not task.targets else np.arange(len(graphs.edges))


def _digest(graphs: GraphSet, parts: RowParts) -> str:
    """Tells a set with its parts from any other: a training does not go on with another one."""
    known = hashlib.sha256()
    tables = [graphs.node_columns, graphs.edge_columns, graphs.graph_columns]
    arrays = [graphs.edges, graphs.node_graph, parts.train, parts.valid, parts.test]
    for part in (*arrays, *(table.numbers for table in tables), *(table.categories for table in tables)):
        known.update(np.ascontiguousarray(part).tobytes())
    return known.hexdigest()
