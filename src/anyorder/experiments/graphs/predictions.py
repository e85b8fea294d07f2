"""Predictions for graphs, nodes and links: what a user asks for, and the file they get."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from anyorder.errors import reading
from anyorder.experiments.graphs.batch import GraphArrays
from anyorder.experiments.graphs.columns import Ints
from anyorder.experiments.graphs.goals import Goal
from anyorder.experiments.graphs.models import GraphModel
from anyorder.experiments.graphs.parts import LinkQuestion, Links, SomeNodes, WholeGraphs, codes
from anyorder.experiments.graphs.readers.tables import read_table
from anyorder.experiments.graphs.shapes import GraphShapes
from anyorder.experiments.graphs.values import GraphSet
from anyorder.files import replacing
from anyorder.ops.allocation import without_holes
from anyorder.training.answers import finite_answers

ALL_PAIRS, SHOWN = 2_000, 1_000
"""Nodes up to which all unlinked pairs are judged, and how many of the likeliest are written."""


def judge(
    model: nn.Module, config: GraphModel, shapes: GraphShapes, graphs: GraphSet, pairs: Ints | None = None
) -> list[Tensor]:
    """The answers for every graph, node, edge or given pair, a tensor for each target."""
    if graphs.directed != shapes.directed:
        kinds = ["directed" if directed else "undirected" for directed in (shapes.directed, graphs.directed)]
        raise ValueError(f"the model was trained on {kinds[0]} graphs, these are {kinds[1]}")
    arrays = GraphArrays(graphs, shapes)
    width = len(shapes.goal.targets)
    if shapes.level == "links":
        asked = graphs.edges if pairs is None else pairs
        part: Any = Links([LinkQuestion(arrays, asked, np.zeros((len(asked), width), np.float32))])
    else:
        count = graphs.num_graphs if shapes.level == "graphs" else graphs.num_nodes
        kind = WholeGraphs if shapes.level == "graphs" else SomeNodes
        part = kind(arrays, np.arange(count), np.zeros((count, width), np.float32), fixed=False)
    goal = Goal(shapes.goal)
    made = []
    with torch.inference_mode():
        step = 1 if shapes.level == "links" else 256
        for start in without_holes(range(0, len(part), step)):
            numbers = range(start, min(start + step, len(part)))
            raw = finite_answers(model(part.batch(numbers, config.inputs))[0], shapes.level)
            made.append(goal.answers(raw))
    return [torch.cat(parts) for parts in zip(*made, strict=True)]


def candidates(graphs: GraphSet, path: Path | None) -> Ints:
    """The pairs to judge: those of a table, or all that are not linked where nodes are few."""
    if path is not None:
        with reading(path, "a table of pairs of nodes"):
            return _listed(graphs, path)
    if graphs.num_nodes > ALL_PAIRS:
        raise ValueError(f"{graphs.num_nodes} nodes have too many pairs: name those to judge in a table, with --pairs FILE")
    first, second = np.triu_indices(graphs.num_nodes, 1)
    pairs = np.stack([first, second], 1)
    pairs = np.concatenate([pairs, pairs[:, ::-1]]) if graphs.directed else pairs
    together = graphs.node_graph[pairs[:, 0]] == graphs.node_graph[pairs[:, 1]]
    return pairs[together & ~np.isin(codes(graphs, pairs), codes(graphs, graphs.edges))]


def write(path: Path, graphs: GraphSet, shapes: GraphShapes, answers: Sequence[Tensor], pairs: Ints | None) -> int:
    """A CSV file with a row for each graph, node or pair: its name, what is known of it, and what the model answers."""
    columns = _names(graphs, shapes, pairs)
    known = graphs.columns(shapes.level)
    for name, answer in zip(shapes.goal.targets, answers, strict=True):
        if pairs is None and name in known.names:
            columns[name] = [text or "" for text in known.texts(name)]
        columns |= _answer_columns(shapes, name, answer)
    rows = list(zip(*columns.values(), strict=True))
    if pairs is not None and "p(linked)" in columns:
        rows = sorted(rows, key=lambda row: -float(row[-1]))[:SHOWN]
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
    return len(rows)


def default_output(folder: Path, data: Path | None) -> Path:
    """Where predictions go unless told: beside the input, or into the folder of the model."""
    if data is None:
        return folder / "predictions.csv"
    return data.with_name(f"{data.stem if data.is_file() else data.name}-predictions.csv")


def _listed(graphs: GraphSet, path: Path) -> Ints:
    table = read_table(path)
    if len(table.columns) < 2:
        raise ValueError(f"{path} has {len(table.columns)} columns: expected two that name the nodes of a pair")
    place = {graphs.node_name(node): node for node in range(graphs.num_nodes)}
    ends = [[str(value).strip() for value in table[name].tolist()] for name in list(table.columns)[:2]]
    for row, pair in enumerate(zip(*ends, strict=True)):
        missing = [end for end in pair if end not in place]
        if missing:
            raise ValueError(f"{path}, row {row + 1}: there is no node {missing[0]!r}")
    return np.array([[place[end] for end in column] for column in ends], np.int64).T.reshape(-1, 2)


def _names(graphs: GraphSet, shapes: GraphShapes, pairs: Ints | None) -> dict[str, list[str]]:
    if shapes.level == "graphs":
        return {"graph": [graphs.graph_name(n) for n in range(graphs.num_graphs)]}
    if shapes.level == "nodes":
        owner = {"graph": [graphs.graph_name(int(n)) for n in graphs.node_graph]} if graphs.num_graphs > 1 else {}
        return {**owner, "node": [graphs.node_name(n) for n in range(graphs.num_nodes)]}
    ends = graphs.edges if pairs is None else pairs
    return {
        "first": [graphs.node_name(int(n)) for n in ends[:, 0]],
        "second": [graphs.node_name(int(n)) for n in ends[:, 1]],
    }


def _answer_columns(shapes: GraphShapes, name: str, answer: Tensor) -> dict[str, list[str]]:
    if shapes.goal.kind == "regression":
        return {f"predicted {name}": [f"{value:.6g}" for value in answer[:, 0].double().tolist()]}
    if shapes.level == "links" and shapes.goal.targets == ("linked",):
        return {"p(linked)": [f"{value:.6g}" for value in answer[:, 1].double().tolist()]}
    classes = shapes.goal.classes[shapes.goal.targets.index(name)]
    best = {f"predicted {name}": [classes[n] for n in answer.argmax(1).tolist()]}
    chances = {f"p({name}={known})": [f"{v:.6g}" for v in answer[:, n].double().tolist()] for n, known in enumerate(classes)}
    return {**best, **chances}
