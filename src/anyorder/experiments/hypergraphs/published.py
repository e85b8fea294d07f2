"""Published hypergraphs for node classification: co-citation, co-authorship, zoo, NTU2012, Mushroom, 20newsW100, ..."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from anyorder.arrays import read_arrays
from anyorder.datasets.registry import locate
from anyorder.errors import InputError, reading
from anyorder.experiments.hypergraphs.data import Hypergraph, NamedHypergraph, offsets_of, without_repeats

MOST_CHANNELS = 2**16
SYNTHETIC_CHANNELS = 100
"""Channels of the synthetic features: the classes in the first ones, noise alone in the others."""


@dataclass(frozen=True, eq=False)
class PublishedHypergraph(NamedHypergraph):
    """A hypergraph with labels and, where they were published, the training nodes of its splits."""

    train_nodes: tuple[Tensor, ...] = ()


@dataclass(frozen=True)
class Source:
    """Where a dataset lies in the registry, how it is read and how many nodes it must have."""

    registry: str
    part: str
    read: Callable[[Path, int], PublishedHypergraph]
    num_nodes: int
    synthetic_features: bool = False


def read_published(
    name: str, *, data_dir: Path | None = None, noise: float = 1.0, synthetic: bool = True
) -> PublishedHypergraph:
    """Read a dataset of ``SOURCES``.

    house-committees and walmart-trips were published without features. By the convention of the literature they get
    synthetic ones: the one-hot class of each node, padded with zeros to 100 channels, plus Gaussian noise of standard
    deviation ``noise``. They are drawn from the labels, of test nodes too, so accuracies say how well a model removes noise
    with the help of the hypergraph, and nothing about legislators or shopping. Without ``synthetic`` they have none.
    """
    if name not in SOURCES:
        raise ValueError(f"unknown hypergraph {name!r}: expected one of {', '.join(SOURCES)}")
    source = SOURCES[name]
    path = locate(source.registry, part=source.part, data_dir=data_dir)
    with reading(path, f"the published hypergraph {name}"), np.errstate(over="ignore"):  # what overflows is refused after
        found = source.read(path, source.num_nodes)
    if not (source.synthetic_features and synthetic):
        return found
    graph = found.hypergraph
    assert graph.labels is not None
    features = noisy_classes(graph.labels, graph.num_classes, noise=noise, seed=0)
    featured = Hypergraph(graph.num_nodes, graph.members, graph.offsets, features, graph.labels)
    return replace(found, hypergraph=featured)


def noisy_classes(labels: Tensor, num_classes: int, *, noise: float, seed: int) -> Tensor:
    """Synthetic features: x = one-hot(label) + noise * N(0, 1), in at least ``SYNTHETIC_CHANNELS`` channels.

    >>> noisy_classes(torch.tensor([1, 0]), 2, noise=0.0, seed=0)[:, :3]
    tensor([[0., 1., 0.],
            [1., 0., 0.]])
    """
    if noise < 0:
        raise ValueError(f"noise must be at least 0, got {noise}")
    channels = max(SYNTHETIC_CHANNELS, num_classes)
    values = noise * torch.randn(len(labels), channels, generator=torch.Generator().manual_seed(seed))
    return values + torch.nn.functional.one_hot(labels, channels)


def _read_citations(path: Path, num_nodes: int) -> PublishedHypergraph:
    """One NPZ file: edges, sparse binary features, labels and the training nodes of ten splits."""
    arrays = read_arrays(path)
    found = int(arrays["num_nodes"])
    if found != num_nodes:
        raise InputError(f"{path} has {found} nodes, expected {num_nodes}")
    shape = tuple(arrays["feat_shape"].tolist())
    if len(shape) != 2 or shape[0] != found or not 0 < shape[1] <= MOST_CHANNELS:
        raise InputError(f"{path}: feat_shape must be ({found}, channels) with at most {MOST_CHANNELS} of them, got {shape}")
    ends, places = arrays["feat_indptr"], arrays["feat_indices"]
    rises = ends.dtype.kind in "iu" and len(ends) == found + 1 and ends[0] == 0 and bool((ends[1:] >= ends[:-1]).all())
    if not rises or ends[-1] != len(places):
        raise InputError(
            f"{path}: feat_indptr must rise from 0 to the {len(places)} features that are there, for {found} nodes"
        )
    features = np.zeros(shape, dtype=np.float32)
    rows = np.repeat(np.arange(found), np.diff(ends))
    features[rows, places] = arrays["feat_data"]
    graph = Hypergraph(
        found,
        torch.from_numpy(arrays["members"].astype(np.int64)),
        torch.from_numpy(arrays["indptr"].astype(np.int64)),
        torch.from_numpy(features),
        torch.from_numpy(arrays["labels"].astype(np.int64)),
    )
    names = [f"split{number}_train" for number in range(1, 11)]
    return PublishedHypergraph(graph, train_nodes=tuple(torch.from_numpy(arrays[name].astype(np.int64)) for name in names))


def _read_content(folder: Path, num_nodes: int) -> PublishedHypergraph:
    """``NAME.content`` (id, features, label) and ``NAME.edges`` (node, edge); edges are numbered on after the nodes."""
    content = _numbers(folder / f"{folder.name}.content.gz")
    content = content[content[:, 0] < num_nodes]  # the others stand for hyperedges
    content = content[np.argsort(content[:, 0], kind="stable")]
    if not np.array_equal(content[:, 0], np.arange(num_nodes)):
        raise InputError(f"{folder.name}.content must have one row for each of the nodes 0 to {num_nodes - 1}")
    pairs = _whole(_numbers(folder / f"{folder.name}.edges.gz"))
    pairs = pairs[np.lexsort((pairs[:, 0], pairs[:, 1]))]
    _, sizes = np.unique(pairs[:, 1], return_counts=True)
    classes, labels = np.unique(_whole(content[:, -1]), return_inverse=True)
    graph = Hypergraph(
        num_nodes,
        torch.from_numpy(pairs[:, 0].copy()),
        offsets_of(torch.from_numpy(sizes.astype(np.int64))),
        torch.from_numpy(content[:, 1:-1].astype(np.float32)),
        torch.from_numpy(labels.astype(np.int64)),
    )
    return PublishedHypergraph(graph, label_names=tuple(map(str, classes.tolist())))


def _read_lists(folder: Path, num_nodes: int) -> PublishedHypergraph:
    """One hyperedge a line and one label a line, both counted from 1; a member named twice in a line counts once."""
    edges = [[int(node) - 1 for node in line.split(",")] for line in _lines(folder / f"hyperedges-{folder.name}.txt.gz")]
    labels = torch.tensor([int(line) - 1 for line in _lines(folder / f"node-labels-{folder.name}.txt.gz")])
    if len(labels) != num_nodes:
        raise InputError(f"{folder} has labels of {len(labels)} nodes, expected {num_nodes}")
    graph = Hypergraph.of_edges(without_repeats(edges), num_nodes=num_nodes, labels=labels)
    return PublishedHypergraph(graph, label_names=tuple(_lines(folder / f"label-names-{folder.name}.txt.gz")))


def _lines(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [line.strip() for line in file if line.strip()]


def _numbers(path: Path) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    lines = _lines(path)
    if not lines:
        raise InputError(f"{path} is empty")
    with reading(path, "a table of numbers"):
        return np.loadtxt(lines, ndmin=2, comments=None)


def _whole(numbers: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    if not (np.abs(numbers) < 2**53).all() or not np.array_equal(numbers, np.round(numbers)):
        raise InputError("expected whole numbers for nodes, hyperedges and classes")
    return numbers.astype(np.int64)


SOURCES: dict[str, Source] = {
    "cora": Source("hypergcn_cocitation", "cocitation_cora.npz", _read_citations, 2708),
    "citeseer": Source("hypergcn_cocitation", "cocitation_citeseer.npz", _read_citations, 3312),
    "cora-coauthorship": Source("hypergcn_cocitation", "coauthorship_cora.npz", _read_citations, 2708),
    "zoo": Source("hypergraph_nodeclass", "zoo", _read_content, 101),
    "ntu2012": Source("hypergraph_nodeclass", "NTU2012", _read_content, 2012),
    "mushroom": Source("hypergraph_nodeclass", "Mushroom", _read_content, 8124),
    "20newsw100": Source("hypergraph_nodeclass", "20newsW100", _read_content, 16242),
    "house-committees": Source("hypergraph_nodeclass", "house-committees", _read_lists, 1290, synthetic_features=True),
    "walmart-trips": Source("hypergraph_nodeclass", "walmart-trips", _read_lists, 88860, synthetic_features=True),
}
