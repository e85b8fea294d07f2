"""What a compiled graph leaves to Python: imported while a model is compiled, since torch's compiler is what it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from anyorder.layouts import IndexSet

if TYPE_CHECKING:
    from anyorder.layers.module import FeatureModule


@torch.compiler.disable(
    reason="inside of a module with fullgraph=True, call model.prepare(x.index) before each new index set"
)
def prepare(module: FeatureModule, index: IndexSet, target: IndexSet | None) -> None:
    """Prepare an index set between two compiled graphs."""
    module.prepare(index, target)
