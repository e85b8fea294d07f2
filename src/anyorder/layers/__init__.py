"""Equivariant layers between any two orders."""

from anyorder.layers.attention import EquivariantAttention
from anyorder.layers.blocks import INTO_NODES, EncoderLayer
from anyorder.layers.kernels import Elu, FeatureKernel, Kernel, KernelsByKind, RandomFeatures, Softmax
from anyorder.layers.learned_features import SHARP, LearnedFeatures
from anyorder.layers.linear import EquivariantLinear
from anyorder.layers.redraw import redraw_features
from anyorder.layers.symmetric import SymmetricLinear
from anyorder.layers.symmetric_attention import SymmetricAttention, SymmetricEncoderLayer
from anyorder.ops.segment import segment_attention

__all__ = [
    "INTO_NODES",
    "SHARP",
    "Elu",
    "EncoderLayer",
    "EquivariantAttention",
    "EquivariantLinear",
    "FeatureKernel",
    "Kernel",
    "KernelsByKind",
    "LearnedFeatures",
    "RandomFeatures",
    "Softmax",
    "SymmetricAttention",
    "SymmetricEncoderLayer",
    "SymmetricLinear",
    "redraw_features",
    "segment_attention",
]
