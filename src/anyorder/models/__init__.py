"""Models made of equivariant layers."""

from anyorder.models.encoder import Encoder, EquivariantMLP
from anyorder.models.exporting import export
from anyorder.models.hypergraph import HypergraphEncoder
from anyorder.models.mixed import MixedEncoder, mixed_linear
from anyorder.models.propagation import PropagationEncoder
from anyorder.models.symmetric import SymmetricEncoder

__all__ = [
    "Encoder",
    "EquivariantMLP",
    "HypergraphEncoder",
    "MixedEncoder",
    "PropagationEncoder",
    "SymmetricEncoder",
    "export",
    "mixed_linear",
]
