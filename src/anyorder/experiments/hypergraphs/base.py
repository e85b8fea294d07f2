"""What a model of hypergraphs is, as a configuration."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from anyorder.experiments.hypergraphs.data import Hypergraph
from anyorder.layouts.transfer import Transferable
from anyorder.training.run import ModelConfig


@dataclass(frozen=True)
class HypergraphModel(ModelConfig):
    """A model of hypergraphs: ``build`` makes a module that takes what ``prepare`` gives and answers (node, class)."""

    @abstractmethod
    def prepare(self, hypergraph: Hypergraph) -> Transferable:
        """What the module takes: everything that follows from the hypergraph alone, worked out once."""
