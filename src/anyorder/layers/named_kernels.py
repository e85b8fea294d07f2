"""Kernels by name, and those of local and global classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from anyorder.layers.kernels import Elu, FeatureKernel, Kernel, KernelsByKind, RandomFeatures, Softmax
from anyorder.layers.learned_features import LearnedFeatures

Coupling = Literal["relaxed", "exact"]
Kernels = Kernel | str | KernelsByKind | Mapping[str, Kernel | str]
"""One kernel or its name, or one for the ``local`` and one for the ``global`` classes."""

NAMED: dict[str, Kernel] = {
    "softmax": Softmax(),
    "elu": Elu(),
    "relu": RandomFeatures(kind="relu"),
    "favor": RandomFeatures(kind="softmax"),
    "learned": LearnedFeatures(),
}
"""Kernels with their default settings, by name."""


def kernel_of(given: Kernel | str) -> Kernel:
    """A kernel, or the one of a name.

    >>> kernel_of("relu")
    RandomFeatures(kind='relu', num_features=None, redraw=None, eps=0.001)
    """
    if isinstance(given, str):
        if given not in NAMED:
            raise ValueError(
                f"kernel must be one of {[*NAMED]}, or a value like RandomFeatures(num_features=64), got {given!r}"
            )
        return NAMED[given]
    if not isinstance(given, (Softmax, FeatureKernel)):
        raise TypeError(f"kernel must be Softmax(), RandomFeatures(...), Elu() or a FeatureKernel, got {given!r}")
    return given


def linear_kernel_of(given: Kernel | str | None) -> FeatureKernel:
    """A kernel in linear time, or the one of a name; ``Elu()`` for None."""
    found = Elu() if given is None else kernel_of(given)
    if not isinstance(found, FeatureKernel):
        raise TypeError(f"kernel must be of linear time here, as RandomFeatures(...) or Elu(), got {given!r}")
    return found


def check_kernels(
    order_out: int, kernel: Kernels | None, coupling: Coupling | None, normalize: bool
) -> tuple[tuple[Kernel, Kernel], Coupling, bool]:
    """The kernels of local and global classes, the coupling and whether attention is normalised."""
    if isinstance(kernel, KernelsByKind):
        kernel = {"local": kernel.local, "global": kernel.other}
    given = kernel if isinstance(kernel, Mapping) else {"local": kernel or Softmax(), "global": kernel or Softmax()}
    if {*given} != {"local", "global"}:
        raise ValueError(f"a mapping of kernels needs 'local' and 'global', got {[*given]}")
    local, everywhere = kernel_of(given["local"]), kernel_of(given["global"])
    if coupling not in (None, "relaxed", "exact"):
        raise ValueError(f"coupling must be 'relaxed' or 'exact', got {coupling!r}")
    if order_out == 0:
        return (Softmax(), Softmax()), "exact", True
    kernels = (local, local if local == everywhere else everywhere)
    if not any(each.is_linear for each in kernels):
        if coupling == "relaxed" or not normalize:
            raise ValueError("softmax is exact and normalised: coupling='relaxed' and normalize=False need another kernel")
        return kernels, "exact", True
    return kernels, coupling or "relaxed", normalize
