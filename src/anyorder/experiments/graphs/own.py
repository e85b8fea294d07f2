"""People's own graphs: what is asked is seen from the data unless it is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
from torch import nn

from anyorder.experiments.graphs.columns import Ints
from anyorder.experiments.graphs.goals import guess_goal
from anyorder.experiments.graphs.joined import PART, joined
from anyorder.experiments.graphs.models import GraphModel
from anyorder.experiments.graphs.predictions import candidates, default_output, judge, write
from anyorder.experiments.graphs.readers.anything import ReadOptions, read_graphs
from anyorder.experiments.graphs.readers.geom import read_split
from anyorder.experiments.graphs.readers.tables import TableNames
from anyorder.experiments.graphs.shapes import GoalKind, GraphShapes
from anyorder.experiments.graphs.splits import column_parts, random_parts
from anyorder.experiments.graphs.task import GraphTask
from anyorder.experiments.graphs.values import LEVELS, Duplicates, GraphSet, Level
from anyorder.suggest import nearest
from anyorder.training.checkpoints import load_run
from anyorder.training.config import configurable
from anyorder.training.parts import RowParts, fold_parts
from anyorder.training.run import ChoosesThenTrainsOnAll, ExplainRequest, PredictRequest, Run

TARGETS = ("label", "y", "target", "class", "labels")
SPLITS = ("split", "part", "fold")


@configurable
@dataclass(frozen=True)
class OwnGraphs(ChoosesThenTrainsOnAll, GraphTask):
    """A user's graphs, from files; parts at random by the seed, in folds, by a column, by a file of masks or by files."""

    data: str = ""
    nodes: str = ""
    graphs: str = ""
    ends: tuple[str, ...] = ()
    node: str = ""
    graph: str = ""
    directed: bool = False
    duplicates: Duplicates = "refuse"
    split_by: str = ""
    """A column with train, valid and test, or an NPZ file with train_mask, val_mask and test_mask."""
    valid_data: str = ""
    test_data: str = ""
    ignored: tuple[str, ...] = ()
    """Columns that are no input."""
    valid: float = 0.1
    test: float = 0.1
    """0: no test part, and the validation part is reported in its place."""
    everything: bool = False
    """Train on all rows and choose nothing: what follows where there is no test part."""
    folds: int = 0
    fold: int = 0
    by_graph: bool = False
    """Nodes of one graph stay in one part."""

    predict_options: ClassVar[tuple[str, ...]] = ("node_table", "graph_table", "pairs")
    explain_options: ClassVar[tuple[str, ...]] = ("input", "graph", "node")

    def options(self) -> ReadOptions:
        """How the files are read."""
        first, second = self.ends if len(self.ends) == 2 else ("", "")
        nodes, graphs = (Path(name) if name else None for name in (self.nodes, self.graphs))
        names = TableNames(first, second, self.node, self.graph)
        return ReadOptions(nodes, graphs, names, self.directed, self.duplicates)

    def read(self, data_dir: Path | None) -> GraphSet:
        graphs = read_graphs(Path(self.data), self.options())
        others = {"valid": self.valid_data, "test": self.test_data}
        held = {part: read_graphs(Path(name), self.options()) for part, name in others.items() if name}
        return joined({"train": graphs, **held}) if held else graphs

    def hidden(self, graphs: GraphSet) -> tuple[str, ...]:
        return (*self.targets, *self.ignored, self.split_by, PART)

    def inputs(self, graphs: GraphSet) -> GraphSet:
        for level in LEVELS:
            graphs = graphs.without(level, self.hidden(graphs) if level == self.level else self.ignored)
        return graphs

    def split(self, graphs: GraphSet, rows: Ints, seed: int) -> RowParts:
        if self.test_data:
            return self._by_files(graphs, rows, seed)
        columns = graphs.columns(self.level)
        if self.split_by.endswith(".npz"):
            named = columns.with_categories("split", read_split(Path(self.split_by), len(columns)))
            return column_parts(named, "split", rows)
        if self.split_by:
            return column_parts(columns, self.split_by, rows)
        if self.test == 0:  # all that is not for validation trains, and validation is what is reported
            parts = random_parts(rows, self._labels(graphs, rows), valid=self.valid / 2, test=self.valid / 2, seed=seed)
            held = np.sort(np.concatenate([parts.valid, parts.test]))
            return RowParts(np.sort(rows) if self.everything else parts.train, held, held)
        owner = self._owners(graphs, rows)
        items, labels = (rows, self._labels(graphs, rows)) if owner is None else (np.unique(owner), None)
        if self.folds:
            parts = fold_parts(items, labels, folds=self.folds, fold=self.fold, seed=seed)
        else:
            parts = random_parts(items, labels, valid=self.valid, test=self.test, seed=seed)
        if owner is None:
            return parts
        return RowParts(*(rows[np.isin(owner, part)] for part in (parts.train, parts.valid, parts.test)))

    @property
    def without_test(self) -> bool:
        return self.test == 0 and not self.everything and not (self.test_data or self.split_by or self.folds)

    def predict(self, model: nn.Module, shapes: GraphShapes, request: PredictRequest) -> str:
        """Answers for all rows of the training data, or of other data of the same columns."""
        config = load_run(request.folder)[0].model
        assert isinstance(config, GraphModel)
        options = self.options()
        tables = {name: Path(path) for name, path in request.options.items()}
        given = replace(options, nodes=tables.get("node_table"), graphs=tables.get("graph_table"))
        graphs = self.read(None) if request.input is None else read_graphs(request.input, given)
        linked = shapes.level == "links" and not self.targets
        pairs = candidates(graphs, tables.get("pairs")) if linked else None
        answers = judge(model, config, shapes, graphs, pairs)
        output = request.output or default_output(request.folder, request.input)
        rows = write(output, graphs, shapes, answers, pairs)
        return f"{rows} {'pairs' if linked else shapes.level} in {output}"

    def explain(self, run: Run, model: nn.Module, shapes: GraphShapes, request: ExplainRequest) -> str:
        from anyorder.experiments.graphs.attention import draw, explain

        given = request.options.get("input")
        graphs = self.read(None) if given is None else read_graphs(Path(given), self.options())
        asked, node = request.options.get("graph"), request.options.get("node")
        graph = 0 if asked is None else _place(asked, [graphs.graph_name(n) for n in range(graphs.num_graphs)], "graph")
        members = np.flatnonzero(graphs.node_graph == graph)
        names = [graphs.node_name(int(n)) for n in members]
        assert isinstance(run.model, GraphModel)
        found = explain(model, run.model, shapes, graphs, graph, layer=request.layer, cls=request.cls)
        path = draw(found, request.output, names, None if node is None else _place(node, names, "node"))
        said = f"graph {graphs.graph_name(graph)}: attention received, {found.title} (1.0: as much as if all were equal)"
        return "\n".join([said, *found.lines(names), f"drawn in {path}"])

    def _by_files(self, graphs: GraphSet, rows: Ints, seed: int) -> RowParts:
        owner = {"graphs": np.arange(graphs.num_graphs), "nodes": graphs.node_graph, "links": graphs.edge_graph}[self.level]
        part = np.array(graphs.graph_columns.texts(PART))[owner[rows]]
        train, valid, test = (rows[part == name] for name in ("train", "valid", "test"))
        if not self.valid_data:
            own = random_parts(train, self._labels(graphs, train), valid=self.valid, test=self.valid, seed=seed)
            train, valid = np.sort(np.concatenate([own.train, own.test])), own.valid
        return RowParts(train, valid, test)

    def _owners(self, graphs: GraphSet, rows: Ints) -> Ints | None:
        """The graph of each row, where whole graphs are held back."""
        if not self.by_graph or self.level == "graphs":
            return None
        return (graphs.node_graph if self.level == "nodes" else graphs.edge_graph)[rows]

    def _labels(self, graphs: GraphSet, rows: Ints) -> Ints | None:
        """The class of each row, for parts that have the same shares of each; none for numbers and several targets."""
        if self.goal != "classification" or len(self.targets) != 1:
            return None
        texts = graphs.columns(self.level).texts(self.targets[0])
        return np.unique([texts[row] or "" for row in rows.tolist()], return_inverse=True)[1].astype(np.int64)


def _place(name: str, known: Sequence[str], what: str) -> int:
    if name not in known:
        raise ValueError(f"there is no {what} {name!r}{nearest(name, known)}")
    return known.index(name)


def resolve(
    task: OwnGraphs, graphs: GraphSet, *, level: str = "", targets: Sequence[str] = (), goal: str = ""
) -> tuple[OwnGraphs, list[str]]:
    """The task with all that was left open seen from the data, and what was seen, a line each."""
    said: list[str] = []
    found = _level(graphs, level, targets)
    columns = graphs.columns(found)
    for name in targets:
        if name not in columns.names:
            raise ValueError(f"no column {name!r} at the level of {found}{nearest(name, columns.names)}")
    if not targets and level != "links":
        targets = _targets(graphs, found)
    if not level or not targets:
        asked = f"{', '.join(targets)} of {found}" if targets else "which pairs are linked"
        said.append(f"asked: {asked} (--level, --target)")
    kind: GoalKind = "classification"
    if targets:
        kind = goal if goal in ("classification", "regression") else guess_goal(columns, targets)  # type: ignore[assignment]
        if not goal:
            said.append(f"goal: {kind}, from the values of {targets[0]!r} (--goal)")
    split_by = task.split_by
    if not split_by and not task.folds and not task.test_data:
        split_by = next((name for name in (*SPLITS, "split_0") if targets and _is_split(graphs, found, name)), "")
        if split_by:
            said.append(f"parts: as column {split_by!r} says (--split)")
    marks = tuple(name for name in columns.names if _is_split(graphs, found, name) and name != split_by)
    if marks:
        said.append(f"no input: {len(marks)} more columns that name parts, such as {marks[0]!r}")
    by_graph = found != "graphs" and bool(targets) and graphs.num_graphs > 1
    if by_graph and not split_by:
        said.append("parts: whole graphs are held back")
    made = replace(
        task,
        level=found,
        targets=tuple(targets),
        goal=kind,
        split_by=split_by,
        by_graph=by_graph,
        ignored=(*task.ignored, *marks),
        choose_by="loss" if targets else "score",
    )
    return made, said


def _level(graphs: GraphSet, level: str, targets: Sequence[str]) -> Level:
    if level:
        if level not in LEVELS:
            raise ValueError(f"unknown level {level!r}{nearest(level, LEVELS)}")
        return level
    order: tuple[Level, ...] = LEVELS if graphs.num_graphs > 1 else ("nodes", "links", "graphs")
    for candidate in order:
        there = graphs.columns(candidate).names
        if all(name in there for name in targets) if targets else any(name in there for name in TARGETS):
            return candidate
    if targets:
        known = {place: list(graphs.columns(place).names)[:12] for place in order}
        raise ValueError(f"no column {targets[0]!r}: there are {known}")
    return "links"


def _targets(graphs: GraphSet, level: Level) -> tuple[str, ...]:
    """The target that a level has by its name; several where ``y`` has several columns."""
    names = graphs.columns(level).names
    found = next((name for name in TARGETS if name in names), "")
    several = tuple(name for name in names if name.startswith("y ") and name[2:].isdecimal())
    if not found and not several and level != "links":
        shown = f"expected --target with one of {list(names)[:20]}" if names else "it has no columns"
        raise ValueError(f"nothing to predict at the level of {level}: {shown}")
    return (found,) if found else several


def _is_split(graphs: GraphSet, level: Level, name: str) -> bool:
    columns = graphs.columns(level)
    if name not in columns.category_names:
        return False
    values = {value.lower() for value in columns.values[columns.category_names.index(name)]}
    return "train" in values and "test" in values
