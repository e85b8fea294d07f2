"""Kernels by name."""

from __future__ import annotations

from anyorder.layers.kernels import Elu, FeatureKernel, Kernel, RandomFeatures, Softmax

NAMED: dict[str, Kernel] = {
    "softmax": Softmax(),
    "elu": Elu(),
    "relu": RandomFeatures(kind="relu"),
    "favor": RandomFeatures(kind="softmax"),
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
