"""Sets of nodes as values, splits of hyperedges into observed and held-out ones, and the check that none leaks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from anyorder.experiments.hypergraphs.data import Hypergraph, offsets_of
from anyorder.layouts.transfer import Transferable

NodeSet = frozenset[int]
SplitBy = Literal["edges", "nodes"]


@dataclass(frozen=True, eq=False)
class Candidates(Transferable):
    """Sets of nodes to score; set c has the nodes ``members[offsets[c]:offsets[c + 1]]``.

    >>> Candidates.of([{2, 0}, {1}]).sizes.tolist()
    [2, 1]
    """

    members: Tensor
    offsets: Tensor

    @classmethod
    def of(cls, sets: Iterable[Iterable[int]]) -> Candidates:
        listed = [sorted(nodes) for nodes in sets]
        members = torch.tensor([node for nodes in listed for node in nodes], dtype=torch.int64)
        return cls(members, offsets_of(torch.tensor([len(nodes) for nodes in listed], dtype=torch.int64)))

    @cached_property
    def sizes(self) -> Tensor:
        return self.offsets.diff()

    @cached_property
    def set_of(self) -> Tensor:
        """(members,): the set of each member."""
        return torch.arange(len(self), device=self.members.device).repeat_interleave(self.sizes)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def listed(self) -> list[list[int]]:
        """The nodes of each set."""
        return [part.tolist() for part in self.members.split(self.sizes.tolist())]

    def chosen(self, which: Tensor) -> Candidates:
        """Some of the sets, in the order given."""
        sizes = self.sizes[which]
        offsets = offsets_of(sizes)
        shift = torch.arange(int(offsets[-1]), device=which.device) - offsets[:-1].repeat_interleave(sizes)
        return Candidates(self.members[self.offsets[:-1][which].repeat_interleave(sizes) + shift], offsets)

    def joined(self, other: Candidates) -> Candidates:
        """These sets, then the others."""
        return Candidates(
            torch.cat([self.members, other.members]), torch.cat([self.offsets, other.offsets[1:] + self.offsets[-1]])
        )


@dataclass(frozen=True)
class EdgeSplit:
    """Distinct hyperedges of two nodes or more: observed ones to train on, and held-out ones to choose by and to test on."""

    train: tuple[NodeSet, ...]
    valid: tuple[NodeSet, ...]
    test: tuple[NodeSet, ...]

    @property
    def every(self) -> frozenset[NodeSet]:
        return frozenset((*self.train, *self.valid, *self.test))


def distinct_sets(graph: Hypergraph) -> list[NodeSet]:
    """The hyperedges of two nodes or more as sets, each once: the same set twice would be in both parts of a split."""
    found = dict.fromkeys(frozenset(graph.edge(number)) for number in range(graph.num_edges))
    return [nodes for nodes in found if len(nodes) > 1]


def split_edges(
    sets: Sequence[NodeSet], *, seed: int, by: SplitBy = "edges", valid: float = 0.1, test: float = 0.2
) -> EdgeSplit:
    """Hyperedges at random into parts; by "nodes", those with a held-out node are the test, so that it is of new nodes."""
    if by not in ("edges", "nodes"):
        raise ValueError(f"a split is by 'edges' or by 'nodes', got {by!r}")
    if not (0 < valid < 1 and 0 <= test < 1 and valid + test < 1):
        raise ValueError(f"shares must leave hyperedges to train on and to choose by, got {valid} and {test}")
    generator = torch.Generator().manual_seed(seed)
    order = [sets[n] for n in torch.randperm(len(sets), generator=generator).tolist()]
    tested = (
        _of_new_nodes(order, round(test * len(sets)), generator) if by == "nodes" else set(order[: round(test * len(sets))])
    )
    others = [nodes for nodes in order if nodes not in tested]
    last = round(valid * len(sets))
    split = EdgeSplit(tuple(others[last:]), tuple(others[:last]), tuple(nodes for nodes in order if nodes in tested))
    if not all((split.train, split.valid, split.test or test == 0)):
        raise ValueError(f"{len(sets)} distinct hyperedges of two nodes or more are too few to split into three parts")
    return split


def _of_new_nodes(sets: Sequence[NodeSet], count: int, generator: torch.Generator) -> set[NodeSet]:
    """At least so many hyperedges, which are all those of some nodes."""
    of: dict[int, list[NodeSet]] = {}
    for nodes in sets:
        for node in nodes:
            of.setdefault(node, []).append(nodes)
    held: set[NodeSet] = set()
    every = sorted(of)
    for n in torch.randperm(len(every), generator=generator).tolist():
        if len(held) >= count:
            break
        held.update(of[every[n]])
    return held


def check_no_leak(observed: Hypergraph, sets: Iterable[NodeSet], held_out: Iterable[NodeSet]) -> None:
    """Refuse a held-out hyperedge among those that messages pass along, or among the sets that training scores."""
    hidden = frozenset(held_out)
    for name, given in (("the observed hypergraph", distinct_sets(observed)), ("the sets of the training", sets)):
        for nodes in given:
            if nodes in hidden:
                raise ValueError(f"a held-out hyperedge is in {name}: {sorted(nodes)}")
