"""Models made of equivariant layers."""

from anyorder.models.encoder import Encoder, EquivariantMLP

__all__ = ["Encoder", "EquivariantMLP"]
