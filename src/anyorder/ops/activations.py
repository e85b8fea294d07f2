"""The formulas of feature maps, each written once for every backend; needs no torch."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any


@dataclass(frozen=True)
class Activation:
    """A function of one number and its gradient, written once and bound to each backend.

    ``value(s, eps)`` is phi; ``gradient(grad, phi, eps)`` turns the gradient of phi into that of s.

    >>> ACTIVATIONS["relu"].on({"positive": lambda x: max(x, 0)}).value(-1.0, 0.5)
    0.5
    """

    name: str
    value: Callable[..., Any]
    gradient: Callable[..., Any]

    @property
    def code(self) -> int:
        """A number that changes with the name and the formulas: compiled loops branch on it and are cached by it."""
        parts = [(f.__code__.co_code, repr(f.__code__.co_consts).encode()) for f in (self.value, self.gradient)]
        return zlib.crc32(b"".join([self.name.encode(), *[bytes for part in parts for bytes in part]]))

    def on(self, names: Mapping[str, Any]) -> Activation:
        """The same formulas with the functions of a backend."""
        return Activation(self.name, bind(self.value, names), bind(self.gradient, names))


def bind(function: Callable[..., Any], names: Mapping[str, Any]) -> Callable[..., Any]:
    """A function whose global names mean something else."""
    assert isinstance(function, FunctionType)
    bound = FunctionType(function.__code__, {**function.__globals__, **names}, function.__name__)
    bound.__module__, bound.__qualname__ = function.__module__, function.__qualname__
    return bound


ACTIVATIONS: dict[str, Activation] = {}


def register_activation(name: str, value: Callable[..., Any], gradient: Callable[..., Any]) -> Activation:
    """Make a formula known to all backends under a name; call it when your module is imported.

    The formulas take and return numbers, which are tensors or registers: arithmetic, ``abs``, whole powers, comparisons,
    ``where(condition, yes, no)``, ``exp(x)``, ``positive(x)`` (x or 0) and ``where_above(grad, x, bound)`` (grad where
    x > bound, else 0).
    """
    made = Activation(name, value, gradient)
    known = ACTIVATIONS.setdefault(name, made)
    if known.code != made.code:
        raise ValueError(f"another activation is called {name!r}: choose another name")
    return known


def _unbound(*given: Any) -> Any:
    raise NotImplementedError("bind the formula to a backend first")


where = exp = positive = where_above = _unbound


def _same(s, eps):  # type: ignore[no-untyped-def]
    return s


def _same_gradient(grad, phi, eps):  # type: ignore[no-untyped-def]
    return grad


def _relu(s, eps):  # type: ignore[no-untyped-def]
    return positive(s) + eps


def _relu_gradient(grad, phi, eps):  # type: ignore[no-untyped-def]
    return where_above(grad, phi, eps)


def _elu(s, eps):  # type: ignore[no-untyped-def]
    return where(s > 0, s + 1, exp(where(s > 0, 0, s))) + eps  # the inner where keeps gradients of large s finite


def _elu_gradient(grad, phi, eps):  # type: ignore[no-untyped-def]
    return where(phi > 1 + eps, grad, grad * (phi - eps))


register_activation("none", _same, _same_gradient)
register_activation("relu", _relu, _relu_gradient)
register_activation("elu", _elu, _elu_gradient)
