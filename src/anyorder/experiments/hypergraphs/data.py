"""Hypergraphs with edges of many sizes: the value, its checks, and splits of its nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TypeVar

import torch
from torch import Tensor

from anyorder.layouts.transfer import Transferable

UNKNOWN = -1
"""The label of a node whose class is not known."""
Made = TypeVar("Made")
Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True, eq=False, repr=False)
class Hypergraph(Transferable):
    """Nodes 0..num_nodes-1 and unordered hyperedges; edge e has the nodes ``members[offsets[e]:offsets[e + 1]]``.

    >>> hypergraph = Hypergraph.of_edges([[0, 1, 2], [2, 3]], num_nodes=5)
    >>> hypergraph, hypergraph.sizes, hypergraph.degrees
    (Hypergraph(nodes=5, edges=2, incidences=5), tensor([3, 2]), tensor([1, 1, 2, 1, 0]))
    """

    num_nodes: int
    members: Tensor
    """(incidences,) int64: the nodes of all edges, edge after edge."""
    offsets: Tensor
    """(edges + 1,) int64: where each edge begins, and where the last one ends."""
    node_features: Tensor | None = None
    """(nodes, channels) float32."""
    labels: Tensor | None = None
    """(nodes,) int64: the class of each node, -1 where it is not known."""
    edge_weights: Tensor | None = None
    """(edges,) float32, positive."""
    edge_features: Tensor | None = None
    """(edges, channels) float32."""
    known: Tensor | None = None
    """(nodes,) int64: the classes that a model is told, -1 for those that it is not; never those of held-out nodes."""

    def __post_init__(self) -> None:
        _check_structure(self)
        _check_rows(self.node_features, "node_features", self.num_nodes, "node", ndim=2)
        _check_rows(self.edge_weights, "edge_weights", self.num_edges, "edge", ndim=1)
        _check_rows(self.edge_features, "edge_features", self.num_edges, "edge", ndim=2)
        if self.edge_weights is not None and not bool((self.edge_weights > 0).all()):
            edge = int((self.edge_weights <= 0).nonzero()[0])
            raise ValueError(f"edge_weights must be positive: edge {edge} has {float(self.edge_weights[edge])}")
        if self.labels is not None:
            if self.labels.dtype != torch.int64 or tuple(self.labels.shape) != (self.num_nodes,):
                got = f"{self.labels.dtype} {tuple(self.labels.shape)}"
                raise ValueError(f"labels must be int64, one per node: expected shape ({self.num_nodes},), got {got}")
            if self.num_nodes and int(self.labels.min()) < UNKNOWN:
                raise ValueError(f"labels must be classes from 0, or {UNKNOWN} for unknown, got {int(self.labels.min())}")

    @classmethod
    def of_edges(cls, edges: Iterable[Sequence[int]], *, num_nodes: int, **fields: Tensor | None) -> Hypergraph:
        """A hypergraph from the nodes of each edge."""
        listed = [list(edge) for edge in edges]
        members = torch.tensor([node for edge in listed for node in edge], dtype=torch.int64)
        return cls(num_nodes, members, offsets_of(torch.tensor([len(edge) for edge in listed], dtype=torch.int64)), **fields)

    @property
    def num_edges(self) -> int:
        return len(self.offsets) - 1

    @property
    def num_classes(self) -> int:
        """One more than the largest class."""
        return 0 if self.labels is None or not len(self.labels) else int(self.labels.max()) + 1

    @cached_property
    def sizes(self) -> Tensor:
        """(edges,): how many nodes each edge has."""
        return self.offsets.diff()

    @cached_property
    def edge_of(self) -> Tensor:
        """(incidences,): the edge of each member."""
        return torch.arange(self.num_edges, device=self.members.device).repeat_interleave(self.sizes)

    @cached_property
    def degrees(self) -> Tensor:
        """(nodes,): in how many edges each node is."""
        return torch.bincount(self.members, minlength=self.num_nodes)

    def edge(self, number: int) -> tuple[int, ...]:
        """The nodes of one edge."""
        return tuple(self.members[int(self.offsets[number]) : int(self.offsets[number + 1])].tolist())

    def once(self, key: Hashable, make: Callable[[Hypergraph], Made]) -> Made:
        """What is worked out from this hypergraph alone, kept with it: plans, inputs of a model."""
        kept = self.__dict__.setdefault("_kept", {})
        if key not in kept:
            kept[key] = make(self)
        return kept[key]

    def __repr__(self) -> str:
        return f"Hypergraph(nodes={self.num_nodes}, edges={self.num_edges}, incidences={len(self.members)})"


@dataclass(frozen=True, eq=False)
class NamedHypergraph:
    """A hypergraph with what its nodes, classes and channels are called; nothing where they are numbers."""

    hypergraph: Hypergraph
    node_names: tuple[str, ...] = ()
    label_names: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()
    edge_feature_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What a user should know of how it was read."""

    def __post_init__(self) -> None:
        counts = {
            "node_names": self.hypergraph.num_nodes,
            "feature_names": _width(self.hypergraph.node_features),
            "edge_feature_names": _width(self.hypergraph.edge_features),
        }
        for name, count in counts.items():
            if (given := len(getattr(self, name))) not in (0, count):
                raise ValueError(f"{name} must name all or none: expected {count}, got {given}")
        if 0 < len(self.label_names) < self.hypergraph.num_classes:
            raise ValueError(f"label_names must name {self.hypergraph.num_classes} classes, got {len(self.label_names)}")

    def node_name(self, node: int) -> str:
        return self.node_names[node] if self.node_names else str(node)

    def label_name(self, label: int) -> str:
        return self.label_names[label] if self.label_names else str(label)


def _width(features: Tensor | None) -> int:
    return 0 if features is None else features.shape[1]


def offsets_of(sizes: Tensor) -> Tensor:
    """Where edges of these sizes begin and end.

    >>> offsets_of(torch.tensor([3, 2]))
    tensor([0, 3, 5])
    """
    return torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])


def without_repeats(edges: Iterable[Sequence[Name]]) -> list[list[Name]]:
    """Edges as sets: each node once, in the order given.

    >>> without_repeats([[3, 1, 3], [2]])
    [[3, 1], [2]]
    """
    return [list(dict.fromkeys(edge)) for edge in edges]


def merged(edges: Sequence[Sequence[int]]) -> tuple[list[Sequence[int]], Tensor | None]:
    """Each set of nodes once, in the order of its first edge, with the number of its edges as weights; None if all are 1.

    >>> merged([[0, 1], [2], [1, 0]])
    ([[0, 1], [2]], tensor([2., 1.]))
    """
    first: dict[frozenset[int], Sequence[int]] = {}
    counts: Counter[frozenset[int]] = Counter()
    for edge in edges:
        first.setdefault(nodes := frozenset(edge), edge)
        counts[nodes] += 1
    if len(first) == len(edges):
        return list(edges), None
    return list(first.values()), torch.tensor([float(counts[nodes]) for nodes in first])


def _check_structure(graph: Hypergraph) -> None:
    if not isinstance(graph.num_nodes, int) or graph.num_nodes < 1:
        raise ValueError(f"num_nodes must be an integer of at least 1, got {graph.num_nodes!r}")
    for name, values in (("members", graph.members), ("offsets", graph.offsets)):
        if not isinstance(values, Tensor) or values.dtype != torch.int64 or values.ndim != 1:
            got = f"{values.dtype} {tuple(values.shape)}" if isinstance(values, Tensor) else type(values).__name__
            raise TypeError(f"{name} must be a flat int64 tensor, got {got}")
    offsets, members = graph.offsets, graph.members
    if not len(offsets) or int(offsets[0]) != 0 or int(offsets[-1]) != len(members):
        ends = [int(offsets[0]), int(offsets[-1])] if len(offsets) else []
        raise ValueError(f"offsets must begin with 0 and end with the {len(members)} members, got ends {ends}")
    if bool((graph.sizes <= 0).any()):
        edge = int((graph.sizes <= 0).nonzero()[0])
        raise ValueError(f"an edge must have at least one node: edge {edge} has {int(graph.sizes[edge])}")
    outside = ((members < 0) | (members >= graph.num_nodes)).nonzero().flatten()
    if len(outside):
        place = int(outside[0])
        raise ValueError(
            f"nodes must lie in 0..{graph.num_nodes - 1}: edge {int(graph.edge_of[place])} has node {int(members[place])}"
        )
    codes = (graph.edge_of * graph.num_nodes + members).sort().values
    repeated = (codes[1:] == codes[:-1]).nonzero().flatten()
    if len(repeated):
        edge, node = divmod(int(codes[repeated[0]]), graph.num_nodes)
        raise ValueError(f"an edge is a set of nodes: edge {edge} has node {node} more than once")


def _check_rows(values: Tensor | None, name: str, rows: int, of: str, ndim: int) -> None:
    if values is None:
        return
    expected = f"({rows}, channels)" if ndim == 2 else f"({rows},)"
    if values.dtype != torch.float32:
        raise TypeError(f"{name} must be float32, got {values.dtype}")
    if values.ndim != ndim or len(values) != rows:
        raise ValueError(f"{name} must have one row per {of}: expected shape {expected}, got {tuple(values.shape)}")
    if not bool(values.isfinite().all()):
        row = int((~values.isfinite()).reshape(rows, -1).any(1).nonzero()[0])
        raise ValueError(f"{name} must be finite: that of {of} {row} is not")


@dataclass(frozen=True, eq=False)
class NodeSplit:
    """The nodes to train on, to choose by and to test on, as sorted node numbers without overlap."""

    train: Tensor
    valid: Tensor
    test: Tensor
    overlap: bool = field(default=False, kw_only=True)
    """Nothing is tested: validation stands for it, or all nodes are trained on."""

    def __post_init__(self) -> None:
        every = torch.cat([self.train, self.valid, self.test])
        if not self.overlap and len(every.unique()) != len(every):
            raise ValueError("the training, validation and test nodes must not overlap")
        for name in ("train", "valid", "test"):
            if not len(getattr(self, name)):
                raise ValueError(f"the split has no {name} nodes: more labelled nodes or other shares are needed")


def random_split(nodes: Tensor, *, seed: int, train: float = 0.5, valid: float = 0.25) -> NodeSplit:
    """Nodes at random into shares: 50 % to train on, 25 % to choose by, the rest to test on."""
    _check_shares(train, valid)
    order = nodes[torch.randperm(len(nodes), generator=torch.Generator().manual_seed(seed))]
    first, second = round(train * len(nodes)), round((train + valid) * len(nodes))
    return NodeSplit(order[:first].sort().values, order[first:second].sort().values, order[second:].sort().values)


def _check_shares(train: float, valid: float) -> None:
    if not (0 < train < 1 and 0 < valid < 1 and train + valid < 1):
        raise ValueError(f"shares must be positive and leave some nodes for the test, got {train} and {valid}")


def stratified_split(nodes: Tensor, labels: Tensor, *, seed: int, train: float = 0.5, valid: float = 0.25) -> NodeSplit:
    """Like ``random_split`` with the same shares of each class, but for rounding."""
    _check_shares(train, valid)
    return NodeSplit(*stratified_parts(nodes, labels, seed=seed, until=(train, train + valid)))


def stratified_parts(nodes: Tensor, labels: Tensor, *, seed: int, until: Sequence[float]) -> list[Tensor]:
    """Nodes at random in parts of all classes alike; ``until`` is the share of the nodes before each part but the first."""
    mixed = nodes[torch.randperm(len(nodes), generator=torch.Generator().manual_seed(seed))]
    order = mixed[labels[mixed].argsort(stable=True)]
    ends = torch.bincount(labels[order]).cumsum(0)
    parts: list[list[Tensor]] = [[] for _ in range(len(until) + 1)]
    for begin, end in pairwise([0, *ends.tolist()]):
        cuts = [round(share * end) - round(share * begin) for share in until]
        for part, piece in zip(parts, order[begin:end].tensor_split(cuts), strict=True):
            part.append(piece)
    return [torch.cat(part).sort().values for part in parts]


def split_around(train: Tensor, nodes: Tensor, *, num_valid: int, seed: int) -> NodeSplit:
    """A published training set; of the other nodes, ``num_valid`` at random to choose by and the rest to test on."""
    others = nodes[~torch.isin(nodes, train)]
    if not 0 < num_valid < len(others):
        raise ValueError(f"num_valid must lie in 1..{len(others) - 1}, as {len(others)} nodes are left, got {num_valid}")
    order = others[torch.randperm(len(others), generator=torch.Generator().manual_seed(seed))]
    return NodeSplit(train.sort().values, order[:num_valid].sort().values, order[num_valid:].sort().values)
