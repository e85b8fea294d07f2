"""What a model of hypergraphs is, as a configuration."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from anyorder.experiments.hypergraphs.data import Hypergraph
from anyorder.experiments.hypergraphs.sampling import Part
from anyorder.layouts.transfer import Transferable
from anyorder.ops.sparse_matrix import SparseMatrix
from anyorder.training.run import ModelConfig


@dataclass(frozen=True)
class HypergraphModel(ModelConfig):
    """A model of hypergraphs: ``build`` makes a module that takes what ``prepare`` gives and answers (node, class)."""

    @abstractmethod
    def prepare(self, hypergraph: Hypergraph) -> Transferable:
        """What the module takes: everything that follows from the hypergraph alone, worked out once."""

    @property
    def hops(self) -> int:
        """How far away the hyperedges are that an output depends on."""
        return int(getattr(self, "layers", 1))

    def links(self, hypergraph: Hypergraph) -> SparseMatrix | None:
        """The nodes that a node reads besides those of its hyperedges."""
        if getattr(self, "neighbours", 0):
            raise ValueError(f"{type(self).__name__} cannot be trained on parts of a hypergraph: expected neighbours=0")
        return None

    def prepare_part(self, whole: Hypergraph, part: Part) -> Transferable:
        """What the module takes for a part of a hypergraph."""
        return self.prepare(part.graph)
