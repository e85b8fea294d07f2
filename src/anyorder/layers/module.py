"""Modules that take and return features, and the checks that they make on their settings and inputs."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.utils.hooks import BackwardHook, RemovableHandle

from anyorder.layouts import Features, IndexSet
from anyorder.saving import SavedModule


class FeatureModule(SavedModule):
    """The base of layers and models: hooks on gradients see rows, and plans are built outside of compiled graphs.

    Layers of your own may derive from it, too.
    """

    order_in: int
    order_out: int
    channels_in: int
    channels_out: int
    _programs: str | None = None

    def prepare(self, index: IndexSet, target: IndexSet | None = None) -> IndexSet:
        """Build now what a pass over ``index`` needs to know of it; returns the index set that the module writes to.

        A loader's workers may do this. A compiled model does it by itself, outside of its graph. As part of another module
        that is compiled with ``fullgraph=True`` it has no place to do so: there it must be done before.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say what it needs to know of an index set")

    def prepare_outside(self, x: Features, target: IndexSet | None) -> None:
        """Prepare ``x`` while a graph is compiled, unless that has been done: the graph breaks here once."""
        if not torch.compiler.is_compiling() or torch.compiler.is_exporting() or not isinstance(x, Features):
            return
        if not self._is_prepared(x, target):
            from anyorder.layers.outside import prepare  # torch's compiler, which takes longer to import than all of ours

            prepare(self, x.index, target)

    def _is_prepared(self, x: Features, target: IndexSet | None) -> bool:
        if self._programs is None or f"prepared {self._programs}" not in x.index._cache:
            return False
        known = x.index._cache[f"prepared {self._programs}"]
        return known is (None if target is x.index else target)

    # torch.compile(module) calls _infer_parameters before each pass, outside of the graph, where a module has both names:
    # meant for lazy modules, and just the place to prepare.
    _initialize_hook: ClassVar[None] = None

    def _infer_parameters(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        x, target = (*args, *(kwargs[name] for name in ("x", "target") if name in kwargs), None, None)[:2]
        if isinstance(x, Features) and not torch.compiler.is_compiling() and not self._is_prepared(x, target):
            with suppress(NotImplementedError):
                self.prepare(x.index, target)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile the passes of this module in place, by ``torch.compile``; index sets are prepared before."""
        super().compile(*args, **kwargs)
        compiled = self._compiled_call_impl
        assert compiled is not None

        def call(*args: Any, **kwargs: Any) -> Any:
            self._infer_parameters(self, args, kwargs)
            return compiled(*args, **kwargs)

        self._compiled_call_impl = call

    def mark_prepared(self, index: IndexSet, target: IndexSet | None) -> None:
        """Remember that a model has prepared an index set."""
        index._cache[f"prepared {self._signature()}"] = None if target is index else target

    def _signature(self) -> str:
        """The same for modules that need to know the same."""
        if self._programs is None:
            programs: list[Any] = [each.program for each in self.modules() if hasattr(each, "program")]
            self._programs = hashlib.sha1(" ".join(each.key for each in programs).encode()).hexdigest()
        return self._programs

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` with the gradients of the rows that come in and go out."""
        open_calls: list[BackwardHook] = []

        def before(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            open_calls.append(BackwardHook(module, [hook], []))
            if not isinstance(args[0], Features):
                return None
            (rows,) = open_calls[-1].setup_input_hook((args[0].rows,))
            return (args[0].with_rows(rows), *args[1:]), kwargs

        def after(module: nn.Module, args: tuple[Any, ...], output: Features) -> Features:
            (rows,) = open_calls.pop().setup_output_hook((output.rows,))
            return output.with_rows(rows)

        first = self.register_forward_pre_hook(before, with_kwargs=True, prepend=prepend)
        second = self.register_forward_hook(after, prepend=prepend)
        return Handles(first, second)


class Handles(RemovableHandle):
    """Two hooks that are removed together."""

    def __init__(self, *handles: RemovableHandle) -> None:
        super().__init__(OrderedDict())
        self._handles = handles

    def remove(self) -> None:
        """Remove the hooks."""
        for handle in self._handles:
            handle.remove()


def check_positive(**settings: int) -> None:
    """Refuse settings that are not positive integers."""
    for name, value in settings.items():
        if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
            raise ValueError(f"{name} must be a positive integer, got {value!r}")


def check_orders(**orders: int) -> None:
    """Refuse orders that are not integers of at least 0."""
    for name, value in orders.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ValueError(f"{name} must be an integer of at least 0, got {value!r}")


def check_input(layer: object, x: Features, order: int, channels: int, weight: Tensor) -> None:
    """Refuse features that a layer was not made for."""
    name = type(layer).__name__
    if not isinstance(x, Features):
        raise TypeError(f"{name} takes Features, got {type(x).__name__}")
    rows = x.rows
    if x.index.order != order:
        raise ValueError(f"{name} takes features of order {order}, got order {x.order}")
    if rows.shape[-1] != channels:
        raise ValueError(f"{name} takes features of {channels} channels, got {x.channels}")
    if rows.device != weight.device:
        raise ValueError(f"{name} has its weights on {weight.device}, got features on {x.device}")
    if rows.dtype != weight.dtype and not torch.is_autocast_enabled(x.device.type):
        raise TypeError(f"{name} has weights of {weight.dtype}, got features of {x.dtype}")
