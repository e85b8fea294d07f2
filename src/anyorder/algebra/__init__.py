"""Set partitions and equivalence classes: what an equivariant layer does, without tensors."""

from anyorder.algebra.classes import (
    KINDS,
    EquivalenceClass,
    Kind,
    Pool,
    Selection,
    classes,
    expansion,
    pools,
    select,
)
from anyorder.algebra.describe import formula, meaning
from anyorder.algebra.partitions import SetPartition, set_partitions

__all__ = [
    "KINDS",
    "EquivalenceClass",
    "Kind",
    "Pool",
    "Selection",
    "SetPartition",
    "classes",
    "expansion",
    "formula",
    "meaning",
    "pools",
    "select",
    "set_partitions",
]
