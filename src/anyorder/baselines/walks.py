"""node2vec on the clique expansion of hyperedges: biased walks for all nodes at once, then skip-gram."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anyorder.data.cooccurrence import clique_counts
from anyorder.data.hyperedges import TypedHyperedges
from anyorder.data.tuples import Ints


@dataclass(frozen=True, eq=False)
class WeightedGraph:
    """Neighbours ``targets[starts[v]:starts[v + 1]]`` of node v, sorted, with positive weights."""

    starts: Ints
    targets: Ints
    weights: NDArray[np.float64]

    @property
    def num_nodes(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def clique_expansion(cls, data: TypedHyperedges) -> WeightedGraph:
        """Two nodes are joined by the (weighted) number of training tuples that hold both.

        >>> data = TypedHyperedges(sizes=(1, 2), train=np.array([[0, 1], [0, 1], [0, 2]]), test=np.zeros((0, 2)))
        >>> WeightedGraph.clique_expansion(data).weights.tolist()
        [2.0, 1.0, 2.0, 1.0]
        """
        parts = [clique_counts(data, position) for position in range(data.order)]
        sources = np.concatenate([rows + shift for (rows, _, _), shift in zip(parts, data.offsets, strict=True)])
        targets, weights = (np.concatenate([part[place] for part in parts]) for place in (1, 2))
        return cls(np.searchsorted(sources, np.arange(data.num_nodes + 1)), targets, weights)

    def has_edges(self, sources: Ints, targets: Ints) -> NDArray[np.bool_]:
        """For each pair whether it is joined."""
        owner = np.repeat(np.arange(self.num_nodes), np.diff(self.starts))
        return _holds(owner * self.num_nodes + self.targets, sources * self.num_nodes + targets)


def _holds(sorted_codes: Ints, codes: Ints) -> NDArray[np.bool_]:
    place = np.minimum(np.searchsorted(sorted_codes, codes), len(sorted_codes) - 1)
    found: NDArray[np.bool_] = sorted_codes[place] == codes
    return found
