"""Segment linear attention as one operator (Sec. 4.3): sum phi(K) V^T over the keys of a group and apply its queries."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib import util
from typing import Any, TypeVar

import torch
from torch import Tensor

from anyorder.layers.kernels import FeatureMap
from anyorder.layouts import Queries, Segments
from anyorder.ops import segment_products, segment_reference

BACKENDS = ("auto", "reference", "numba", "products", "triton")
WIDE = 1024  # features x channels of a head from which on products of matrices are faster than loops,
LONG = 2**20  # where a group has so many of these in all of its rows and heads
INSTALLED = {name: util.find_spec(name) is not None for name in ("numba", "triton")}
Operator = TypeVar("Operator", bound=Callable[..., Any])
_forced: list[str] = [os.environ.get("ANYORDER_BACKEND", "auto")]


@contextmanager
def use_backend(name: str) -> Iterator[None]:
    """Force how the operator is done: ``reference``, ``numba`` or ``products`` (CPU), ``triton`` (GPU), or ``auto``."""
    if name not in BACKENDS:
        raise ValueError(f"backend must be one of {BACKENDS}, got {name!r}")
    before, _forced[0] = _forced[0], name
    try:
        yield
    finally:
        _forced[0] = before


def backend_of(tensor: Tensor) -> str:
    """Which version of an operator a tensor gets."""
    if _forced[0] != "auto":
        return _forced[0]
    if tensor.device.type == "cpu":
        return "numba" if INSTALLED["numba"] else "reference"
    return "triton" if tensor.device.type == "cuda" and INSTALLED["triton"] else "reference"


def _choose(
    query: Tensor, value: Tensor, directions: Tensor | None, key_order: Tensor, key_pointer: Tensor, query_order: Tensor
) -> str:
    """The version for a call: on the CPU, products of matrices where heads are wide and groups are large."""
    backend = backend_of(query)
    if _forced[0] != "auto" or query.device.type != "cpu":
        return backend
    features = query.shape[-1] if directions is None else len(directions)
    head = features * (query.shape[-1] + value.shape[-1])
    rows = len(key_order) + len(query_order)  # the latter for each class
    return "products" if head >= WIDE and rows * query.shape[2] * head >= LONG * (len(key_pointer) - 1) else backend


def segment_attention(
    query: Tensor, key: Tensor, value: Tensor, keys: Segments, queries: Queries, features: FeatureMap, normalize: bool
) -> tuple[Tensor, Tensor]:
    r"""Sums over groups of keys, weighted by a product of features.

    .. math:: N_j = \phi(q_j)^T \sum_{i \in g(j)} \phi(k_i) v_i^T, \quad Z_j = \phi(q_j)^T \sum_{i \in g(j)} \phi(k_i)

    Args:
        query: (query, class, head, channel).
        key, value: (key, class, head, channel).
        keys: the keys of each group, the same for all classes.
        queries: the queries of each group, for each class; a query of no group gets zeros.
        features: phi.
        normalize: give N / Z instead of N.

    Returns:
        The sums (query, class, head, channel) and the norms Z (query, class, head), which have a gradient only if they do
        not divide the sums.
    """
    if features.kind == "exp":
        raise ValueError("apply the softmax feature map before, with its exponents shifted; then use the kind 'none'")
    half = (torch.bfloat16, torch.float16)
    inputs = [part.float() if part.dtype in half else part for part in (query, key, value)]
    sums, norms = torch.ops.anyorder.segment_attention(
        *inputs,
        features.directions,
        keys.order,
        keys.pointer,
        queries.order,
        queries.pointer,
        features.kind,
        features.eps,
        normalize,
    )
    return sums.to(value.dtype), norms.to(value.dtype)


def _in_given_precision(operator: Operator) -> Operator:
    """The operator without autocast, which would change the precision of some of its products."""

    @wraps(operator)
    def run(query: Tensor, *rest: Any) -> Any:
        with torch.autocast(query.device.type, enabled=False):
            return operator(query, *rest)

    return run  # type: ignore[return-value]


@torch.library.custom_op("anyorder::segment_attention", mutates_args=())
@_in_given_precision
def _forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    directions: Tensor | None,
    key_order: Tensor,
    key_pointer: Tensor,
    query_order: Tensor,
    query_pointer: Tensor,
    kind: str,
    eps: float,
    normalize: bool,
) -> tuple[Tensor, Tensor]:
    arguments = (query, key, value, directions, key_order, key_pointer, query_order, query_pointer, kind, eps)
    backend = _choose(query, value, directions, key_order, key_pointer, query_order)
    if backend == "reference":
        return segment_reference.forward(*arguments, normalize)
    # all is written where each query is in a group of each class
    make = value.new_empty if backend == "numba" and len(query_order) == len(query) * query.shape[1] else value.new_zeros
    sums, norms = make(len(query), *value.shape[1:]), make(len(query), *value.shape[1:3])
    if backend == "numba":
        from anyorder.ops import segment_cpu

        problem = segment_cpu.pose(*arguments)
        segment_cpu.forward(problem, sums.view(-1).numpy(), norms.view(-1).numpy(), normalize)
    elif backend == "products":
        segment_products.forward(segment_products.Problem.build(*arguments), sums, norms, normalize)
    else:
        from anyorder.ops import segment_triton

        segment_triton.forward(*arguments, normalize, sums, norms)
    return sums, norms


@_forward.register_fake
def _(query, key, value, directions, key_order, key_pointer, query_order, query_pointer, kind, eps, normalize):  # type: ignore[no-untyped-def]
    count = query.shape[0]  # len(query) would fix it for all graphs to come
    return value.new_empty(count, *value.shape[1:]), value.new_empty(count, *value.shape[1:3])


@torch.library.custom_op("anyorder::segment_attention_backward", mutates_args=())
@_in_given_precision
def _backward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    directions: Tensor | None,
    key_order: Tensor,
    key_pointer: Tensor,
    query_order: Tensor,
    query_pointer: Tensor,
    kind: str,
    eps: float,
    normalize: bool,
    sums: Tensor,
    norms: Tensor,
    grad_sums: Tensor,
    grad_norms: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    arguments = (query, key, value, directions, key_order, key_pointer, query_order, query_pointer, kind, eps)
    backend = _choose(query, value, directions, key_order, key_pointer, query_order)
    if backend == "reference":
        return segment_reference.backward(*arguments, normalize, sums, norms, grad_sums, grad_norms)
    made = tuple(torch.zeros(part.shape, dtype=part.dtype, device=part.device) for part in (query, key, value))
    if backend == "numba":
        from anyorder.ops import segment_cpu

        given = [part.contiguous().view(-1).numpy() for part in (sums, norms, grad_sums, grad_norms)]
        targets = tuple(part.view(-1).numpy() for part in made)
        problem = segment_cpu.pose(*arguments)
        segment_cpu.backward(problem, given[0], given[1], normalize, given[2], given[3], targets)  # type: ignore[arg-type]
    elif backend == "products":
        posed = segment_products.Problem.build(*arguments)
        segment_products.backward(posed, sums, norms, normalize, grad_sums, grad_norms, made)  # type: ignore[arg-type]
    else:
        from anyorder.ops import segment_triton

        segment_triton.backward(*arguments, normalize, sums, norms, grad_sums, grad_norms, made)
    return made  # type: ignore[return-value]


@_backward.register_fake
def _(query, key, value, *rest):  # type: ignore[no-untyped-def]
    return tuple(part.new_empty(part.shape) for part in (query, key, value))


def _no_second(ctx, *grads):  # type: ignore[no-untyped-def]
    raise NotImplementedError("kernel attention has no second derivatives: its backward pass cannot be differentiated")


_backward.register_autograd(_no_second)


def _setup(ctx, inputs, output):  # type: ignore[no-untyped-def]
    *tensors, kind, eps, normalize = inputs
    ctx.save_for_backward(*tensors, *(output if normalize else ()))  # the gradient of N and Z does not need them
    ctx.options = (kind, eps, normalize)
    ctx.shapes = [part.shape for part in output]


def _gradient(ctx, grad_sums, grad_norms):  # type: ignore[no-untyped-def]
    saved = ctx.saved_tensors  # asked for once: it may be worked out again for that
    tensors, outputs = saved[:8], saved[8:]
    given = [
        tensors[0].new_zeros(shape) if grad is None else grad
        for grad, shape in zip((grad_sums, grad_norms), ctx.shapes, strict=True)
    ]
    grads = torch.ops.anyorder.segment_attention_backward(*tensors, *ctx.options, *(outputs or given), *given)
    return *grads, *[None] * 8


_forward.register_autograd(_gradient, setup_context=_setup)
