"""Set partitions and equivalence classes: what an equivariant layer does, without tensors."""

from anyorder.algebra.attention_steps import attention_program
from anyorder.algebra.classes import (
    KINDS,
    EquivalenceClass,
    Kind,
    Pool,
    classes,
    expansion,
    pointwise_into,
    pools,
    projecting,
)
from anyorder.algebra.describe import formula, meaning
from anyorder.algebra.linear_steps import linear_program
from anyorder.algebra.partitions import SetPartition, set_partitions
from anyorder.algebra.program import SHARINGS, Program, Sharing
from anyorder.algebra.selections import LIGHTWEIGHT, PROJECTING, Lightweight, Projecting, Selection, select, select_mlp

__all__ = [
    "KINDS",
    "LIGHTWEIGHT",
    "PROJECTING",
    "SHARINGS",
    "EquivalenceClass",
    "Kind",
    "Lightweight",
    "Pool",
    "Program",
    "Projecting",
    "Selection",
    "SetPartition",
    "Sharing",
    "attention_program",
    "classes",
    "expansion",
    "formula",
    "linear_program",
    "meaning",
    "pointwise_into",
    "pools",
    "projecting",
    "select",
    "select_mlp",
    "set_partitions",
]
