"""Folders of Geom-GCN: out1_graph_edges.txt, out1_node_feature_label.txt and split files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from anyorder.arrays import read_arrays
from anyorder.errors import InputError
from anyorder.experiments.graphs.columns import Columns, Floats, Ints
from anyorder.experiments.graphs.values import GraphSet

EDGES, NODES = "out1_graph_edges.txt", "out1_node_feature_label.txt"
MOST_FEATURES = 2**20


def is_geom(folder: Path) -> bool:
    """Whether a folder is of this kind."""
    return (folder / EDGES).exists() and (folder / NODES).exists()


def read_geom(folder: Path) -> GraphSet:
    """One undirected graph; node columns ``label``, the features, and ``split_0``, ``split_1``, ... of the split files."""
    ids, features, labels = _nodes(folder / NODES)
    place = {name: row for row, name in enumerate(ids)}
    pairs = _edges(folder / EDGES, place)
    nodes = Columns.empty(len(ids)).with_numbers([f"feature {n}" for n in range(features.shape[1])], features)
    nodes = nodes.with_categories("label", labels)
    splits = sorted(folder.glob("split_*.npz"), key=lambda path: int(path.stem.split("_")[1]))
    for path in splits:
        nodes = nodes.with_categories(path.stem, read_split(path, len(ids)))
    said = f"{len(splits)} given splits" if splits else "no split files"
    return GraphSet.build(
        pairs,
        num_nodes=len(ids),
        node_columns=nodes,
        node_names=ids,
        duplicates="first",
        notes=(f"Geom-GCN folder, {said}",),
    )


def read_split(path: Path, rows: int) -> list[str]:
    """The part of each row, from masks ``train_mask``, ``val_mask`` and ``test_mask``."""
    names = {"train_mask": "train", "val_mask": "valid", "test_mask": "test"}
    parts = [""] * rows
    held = read_arrays(path)
    for mask, name in names.items():
        if mask not in held or held[mask].shape != (rows,):
            raise InputError(f"{path}: expected {mask} with one value for each of {rows} nodes")
        for row in np.flatnonzero(held[mask]).tolist():
            parts[row] = name
    return parts


def _nodes(path: Path) -> tuple[list[str], Floats, list[str]]:
    """Names, features and labels, sorted by number; a feature list of equal lengths is a row of zeros and ones."""
    lines = [line.rstrip("\n").split("\t") for line in path.read_text().splitlines()[1:] if line]
    if not lines or any(len(line) != 3 for line in lines):
        raise ValueError(f"{path}: expected the columns node, features and label, separated by tabs")
    lines.sort(key=lambda line: int(line[0]))
    lists = [[int(value) for value in line[1].split(",")] if line[1] else [] for line in lines]
    if len({len(values) for values in lists}) == 1 and max(map(max, lists)) <= 1:
        features = np.array(lists, np.float32)
    else:  # places of the ones
        if any(not 0 <= value < MOST_FEATURES for values in lists for value in values):
            raise InputError(f"{path}: features must be places below {MOST_FEATURES:,}")
        features = np.zeros((len(lists), 1 + max(max(values, default=0) for values in lists)), np.float32)
        for row, values in enumerate(lists):
            features[row, values] = 1.0
    return [line[0] for line in lines], features, [line[2] for line in lines]


def _edges(path: Path, place: dict[str, int]) -> Ints:
    pairs = []
    for number, line in enumerate(path.read_text().splitlines()[1:], 2):
        ends = line.split("\t")
        missing = [end for end in ends if end not in place]
        if len(ends) != 2 or missing:
            what = f"an edge to a missing node {missing[0]!r}" if missing else f"expected two nodes, got {len(ends)}"
            raise ValueError(f"{path}, line {number}: {what}")
        pairs.append((place[ends[0]], place[ends[1]]))
    return np.array(pairs, np.int64).reshape(-1, 2)
