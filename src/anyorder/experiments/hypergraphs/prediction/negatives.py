"""Sets of nodes that are no hyperedges: of the same size at random, connected ones, and hyperedges with one node changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Literal

from anyorder.experiments.hypergraphs.prediction.sets import NodeSet

Kind = Literal["size", "motif", "clique"]
KINDS: tuple[Kind, ...] = ("size", "motif", "clique")
TRIES = 50


class SetNegatives:
    """Draws negatives from observed hyperedges alone; a set in ``known`` is never drawn.

    size: nodes at random, as many as in the hyperedge. motif: a connected set, grown from node to node along observed
    hyperedges. clique: the hyperedge with one node replaced by another that shares a hyperedge with all of the rest, or with
    as many as could be found.
    """

    def __init__(self, observed: Sequence[NodeSet], *, num_nodes: int, known: Iterable[NodeSet], seed: int) -> None:
        self.observed = [sorted(nodes) for nodes in observed]
        self.num_nodes, self.known, self.random = num_nodes, frozenset(known), Random(seed)
        self.edges_of: dict[int, list[int]] = {}
        for number, nodes in enumerate(self.observed):
            for node in nodes:
                self.edges_of.setdefault(node, []).append(number)
        self.edge_sets = {node: frozenset(numbers) for node, numbers in self.edges_of.items()}

    def draw(self, positive: NodeSet, kind: Kind) -> NodeSet:
        """A set of the size of ``positive`` that is no known hyperedge."""
        if kind not in KINDS:
            raise ValueError(f"negatives are of the kinds {', '.join(KINDS)}, got {kind!r}")
        if len(positive) > self.num_nodes:
            raise ValueError(f"a set of {len(positive)} nodes cannot be drawn from {self.num_nodes}")
        make = {"size": self._size, "motif": self._motif, "clique": self._clique}[kind]
        for attempt in range(2 * TRIES):
            found = make(positive) if attempt < TRIES else self._size(positive)
            if found not in self.known:
                return found
        raise ValueError(f"no set of {len(positive)} nodes was found in {2 * TRIES} tries that is no hyperedge")

    def _size(self, positive: NodeSet) -> NodeSet:
        return frozenset(self.random.sample(range(self.num_nodes), len(positive)))

    def _motif(self, positive: NodeSet) -> NodeSet:
        found = {self.random.choice(self.random.choice(self.observed))}
        for _ in range(TRIES * len(positive)):
            if len(found) == len(positive):
                break
            found.add(self._beside(self.random.choice(sorted(found))))
        while len(found) < len(positive):  # its part of the hypergraph is too small
            found.add(self.random.randrange(self.num_nodes))
        return frozenset(found)

    def _clique(self, positive: NodeSet) -> NodeSet:
        kept = sorted(positive)
        kept.remove(self.random.choice(kept))
        best, most = self.random.randrange(self.num_nodes), -1
        for _ in range(TRIES):
            node = self._beside(self.random.choice(kept))
            if node in positive:
                continue
            shared = sum(self._share(node, other) for other in kept)
            if shared > most:
                best, most = node, shared
            if shared == len(kept):
                break
        while best in positive:
            best = self.random.randrange(self.num_nodes)
        return frozenset((*kept, best))

    def _beside(self, node: int) -> int:
        """A node that shares an observed hyperedge with a node, or any node if there is none."""
        numbers = self.edges_of.get(node)
        if not numbers:
            return self.random.randrange(self.num_nodes)
        return self.random.choice(self.observed[self.random.choice(numbers)])

    def _share(self, first: int, second: int) -> bool:
        none: frozenset[int] = frozenset()
        return not self.edge_sets.get(first, none).isdisjoint(self.edge_sets.get(second, none))
