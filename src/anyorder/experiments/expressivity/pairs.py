"""Pairs of graphs that are hard to tell apart: BREC, strongly regular graphs of 25 nodes, circulant skip links."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from anyorder.arrays import check_texts
from anyorder.datasets.registry import locate
from anyorder.errors import InputError, reading
from anyorder.experiments.expressivity.graphs import Graph, parse_graph6

GROUPS: dict[str, tuple[str, int]] = {
    "basic": ("basic.npy", 60),
    "regular": ("regular.npy", 50),
    "extension": ("extension.npy", 100),
    "strongly regular": ("str.npy", 50),
    "4-vertex condition": ("4vtx.npy", 20),
    "distance regular": ("dr.npy", 20),
    "CFI": ("cfi.npy", 100),
}
"""The groups of BREC, with the file and the number of pairs of each."""
SKIPS = (2, 3, 4, 5, 6, 9, 11, 12, 13, 16)


@dataclass(frozen=True, eq=False)
class Pair:
    """Two graphs that are not isomorphic, the ``number``-th pair of its group."""

    group: str
    number: int
    first: Graph
    second: Graph

    @property
    def num_nodes(self) -> int:
        return max(self.first.num_nodes, self.second.num_nodes)


def read_pairs(path: Path, group: str, expected: int | None = None) -> list[Pair]:
    """The pairs of a NumPy file of graph6 strings: graphs 0 and 1, 2 and 3, and so on."""
    with reading(path, "a NumPy array of strings"), np.errstate(over="ignore"):  # sizes that overflow are refused
        strings = np.load(path, mmap_mode="r", allow_pickle=False)  # no memory is taken for what the file does not hold
        if not isinstance(strings, np.ndarray) or strings.size > path.stat().st_size:
            raise InputError("expected one array, no larger than its file")
        check_texts(strings, "the array")
    if strings.dtype.kind not in "US" or strings.size % 2:
        raise InputError(f"{path}: expected an even number of graph6 strings, got {strings.size} of {strings.dtype}")
    if expected is not None and strings.size != 2 * expected:
        raise InputError(f"{path}: expected {expected} pairs, got {strings.size / 2:g}")
    graphs = [_parse(path, place, text) for place, text in enumerate(strings.reshape(-1).tolist())]
    return [Pair(group, n, first, second) for n, (first, second) in enumerate(zip(graphs[::2], graphs[1::2], strict=True))]


def _parse(path: Path, place: int, text: str | bytes) -> Graph:
    try:
        return parse_graph6(text)
    except ValueError as error:
        raise InputError(f"{path}, string {place}: {error}") from error


def brec(*, data_dir: Path | None, groups: tuple[str, ...] = tuple(GROUPS)) -> list[Pair]:
    """The 400 pairs of BREC, or those of some groups."""
    unknown = [group for group in groups if group not in GROUPS]
    if unknown:
        raise InputError(f"unknown group {unknown[0]!r} of BREC: expected one of {[*GROUPS]}")
    return [
        pair
        for group in groups
        for pair in read_pairs(locate("brec", part=GROUPS[group][0], data_dir=data_dir), group, GROUPS[group][1])
    ]


def sr25(*, data_dir: Path | None) -> list[Pair]:
    """All pairs of the strongly regular graphs of 25 nodes and degree 12 in BREC: 14 of the 15 that there are."""
    found = [pair for pair in brec(data_dir=data_dir, groups=("strongly regular",)) if pair.num_nodes == 25]
    graphs = {graph.adjacency.tobytes(): graph for pair in found for graph in (pair.first, pair.second)}
    return [Pair("", n, first, second) for n, (first, second) in enumerate(combinations(graphs.values(), 2))]


def skip_links(num_nodes: int, skip: int) -> Graph:
    """A cycle with a second one laid over it that takes ``skip`` steps at a time.

    >>> sorted(set(skip_links(41, 3).degrees.tolist()))
    [4]
    """
    if not 2 <= skip < num_nodes - 1:
        raise ValueError(f"a skip must be at least 2 and below {num_nodes - 1}, got {skip}")
    return Graph.from_edges(num_nodes, [(v, (v + step) % num_nodes) for v in range(num_nodes) for step in (1, skip)])


def csl() -> list[Pair]:
    """The 45 pairs of the ten circulant graphs with 41 nodes of Murphy et al. (2019)."""
    graphs = [skip_links(41, skip) for skip in SKIPS]
    return [Pair("", n, first, second) for n, (first, second) in enumerate(combinations(graphs, 2))]
