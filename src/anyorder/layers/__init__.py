"""Equivariant layers between any two orders."""

from anyorder.layers.attention import EquivariantAttention, redraw_features
from anyorder.layers.blocks import EncoderLayer
from anyorder.layers.kernels import Elu, Kernel, RandomFeatures, Softmax
from anyorder.layers.linear import EquivariantLinear
from anyorder.layers.mixed import MixedEncoder, mixed_linear
from anyorder.layers.segment import segment_attention
from anyorder.layers.symmetric import SymmetricLinear

__all__ = [
    "Elu",
    "EncoderLayer",
    "EquivariantAttention",
    "EquivariantLinear",
    "Kernel",
    "MixedEncoder",
    "RandomFeatures",
    "Softmax",
    "SymmetricLinear",
    "mixed_linear",
    "redraw_features",
    "segment_attention",
]
