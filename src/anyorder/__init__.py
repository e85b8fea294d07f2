"""Permutation-equivariant Transformers for data of any order: sets, graphs, hypergraphs and maps between them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from anyorder import experiments  # only names: what a saved model is made of is found by them

if TYPE_CHECKING:
    from anyorder.layers import (
        INTO_NODES,
        SHARP,
        Elu,
        EncoderLayer,
        EquivariantAttention,
        EquivariantLinear,
        KernelsByKind,
        LearnedFeatures,
        RandomFeatures,
        Softmax,
        SymmetricAttention,
        SymmetricEncoderLayer,
        SymmetricLinear,
        redraw_features,
    )
    from anyorder.layouts import (
        AllTuples,
        CompleteIndexSet,
        ConnectedTuples,
        DenseIndexSet,
        DistinctTuples,
        Features,
        IndexSet,
        MixedFeatures,
        SparseIndexSet,
        SymmetricIndexSet,
        TuplesWithin,
        collate,
        lift,
    )
    from anyorder.models import (
        Encoder,
        EquivariantMLP,
        HypergraphEncoder,
        MixedEncoder,
        PropagationEncoder,
        SymmetricEncoder,
        export,
        mixed_linear,
    )
    from anyorder.saving import SavedModule
    from anyorder.training.checkpoints import load

_HOMES = {
    "anyorder.layouts": (
        "AllTuples",
        "CompleteIndexSet",
        "ConnectedTuples",
        "DenseIndexSet",
        "DistinctTuples",
        "Features",
        "IndexSet",
        "MixedFeatures",
        "SparseIndexSet",
        "SymmetricIndexSet",
        "TuplesWithin",
        "collate",
        "lift",
    ),
    "anyorder.layers": (
        "INTO_NODES",
        "SHARP",
        "Elu",
        "EncoderLayer",
        "EquivariantAttention",
        "EquivariantLinear",
        "KernelsByKind",
        "LearnedFeatures",
        "RandomFeatures",
        "Softmax",
        "SymmetricAttention",
        "SymmetricEncoderLayer",
        "SymmetricLinear",
        "redraw_features",
    ),
    "anyorder.models": (
        "Encoder",
        "EquivariantMLP",
        "HypergraphEncoder",
        "MixedEncoder",
        "PropagationEncoder",
        "SymmetricEncoder",
        "export",
        "mixed_linear",
    ),
    "anyorder.saving": ("SavedModule",),
    "anyorder.training.checkpoints": ("load",),
}
_FOLDERS = ("algebra", "convert", "estimators", "layers", "layouts", "models", "pyg", "testing")
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__version__ = "0.1.0"
__all__ = [
    "INTO_NODES",
    "SHARP",
    "AllTuples",
    "CompleteIndexSet",
    "ConnectedTuples",
    "DenseIndexSet",
    "DistinctTuples",
    "Elu",
    "Encoder",
    "EncoderLayer",
    "EquivariantAttention",
    "EquivariantLinear",
    "EquivariantMLP",
    "Features",
    "HypergraphEncoder",
    "IndexSet",
    "KernelsByKind",
    "LearnedFeatures",
    "MixedEncoder",
    "MixedFeatures",
    "PropagationEncoder",
    "RandomFeatures",
    "SavedModule",
    "Softmax",
    "SparseIndexSet",
    "SymmetricAttention",
    "SymmetricEncoder",
    "SymmetricEncoderLayer",
    "SymmetricIndexSet",
    "SymmetricLinear",
    "TuplesWithin",
    "collate",
    "experiments",
    "export",
    "lift",
    "load",
    "mixed_linear",
    "redraw_features",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that ``anyorder.algebra`` stays free of torch."""
    if name in _FOLDERS:
        return importlib.import_module(f"anyorder.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'anyorder' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME, *_FOLDERS])
