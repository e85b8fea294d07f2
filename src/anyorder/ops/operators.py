"""Functions that torch knows as operators, called without its dispatcher where nobody looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from anyorder.ops.backends import is_watched


class Operator:
    """A function of tensors, lists of tensors, numbers and strings as an operator ``anyorder::name``.

    Compilers, tracers, profilers and modes of the dispatcher see the operator. Where there are none, the function itself is
    called, whose gradient is then an ``autograd.Function``: the way through the dispatcher takes a tenth of a millisecond.

    Args:
        name: of the operator.
        compute: the function; its results share no memory with its arguments.
        fake: the same for shapes alone.
        setup, gradient: as ``torch.library.register_autograd`` takes them; without, results have no gradient.
        schema: types of arguments and results (default: from the annotations of ``compute``).
    """

    def __init__(
        self,
        name: str,
        compute: Callable[..., Any],
        fake: Callable[..., Any],
        *,
        setup: Callable[..., None] | None = None,
        gradient: Callable[..., tuple[Any, ...]] | None = None,
        schema: str | None = None,
    ) -> None:
        self.compute, self.setup, self.gradient = compute, setup, gradient
        made = torch.library.custom_op(f"anyorder::{name}", compute, mutates_args=(), schema=schema)
        made.register_fake(fake)
        if gradient is not None:
            made.register_autograd(gradient, setup_context=setup)
        self._known = getattr(torch.ops.anyorder, name).default

    def __call__(self, *given: Any) -> Any:
        if torch.compiler.is_compiling():
            return self._known(*given)
        tensors = [*_tensors(given)]
        if is_watched(*tensors):
            return self._known(*given)
        if self.gradient is not None and torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
            lengths = [len(part) if _is_list(part) else None for part in given]
            return _Function.apply(self, lengths, *_flat(given, lengths))
        return self.compute(*given)


class _Function(torch.autograd.Function):
    """Arguments one by one: autograd does not look into lists."""

    @staticmethod
    def forward(ctx: Any, operator: Operator, lengths: Sequence[int | None], *flat: Any) -> Any:
        parts = iter(flat)
        given = [next(parts) if length is None else [next(parts) for _ in range(length)] for length in lengths]
        made = operator.compute(*given)
        assert operator.setup is not None
        operator.setup(ctx, given, made)
        ctx.operator, ctx.lengths = operator, lengths
        return tuple(made) if isinstance(made, list) else made

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        return None, None, *_flat(ctx.operator.gradient(ctx, *grads), ctx.lengths)


def _is_list(part: Any) -> bool:
    return isinstance(part, list | tuple) and len(part) > 0 and isinstance(part[0], Tensor)


def _tensors(given: Sequence[Any]) -> Iterator[Tensor]:
    for part in given:
        if isinstance(part, Tensor):
            yield part
        elif _is_list(part):
            yield from part


def _flat(given: Sequence[Any], lengths: Sequence[int | None]) -> Iterator[Any]:
    for part, length in zip(given, lengths, strict=True):
        if length is None:
            yield part
        else:
            yield from part
