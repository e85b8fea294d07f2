"""Segment linear attention as one operator (Sec. 4.3): sum phi(K) V^T over the keys of a group and apply its queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from anyorder.layouts import Queries, Segments
from anyorder.layouts.memory import is_exported
from anyorder.ops import segment_products, segment_reference
from anyorder.ops.backends import INSTALLED, backend_of, forced, is_transformed
from anyorder.ops.features import FeatureMap
from anyorder.ops.problem import Problem

WIDE = 1024  # features x channels of a head from which on products of matrices are faster than loops,
LONG = 2**20  # where a group has so many of these in all of its rows and heads
SMALL = 2**19  # numbers in all phi(k) v^T below which the call of compiled loops does not pay
Pair = tuple[Tensor, Tensor]


def segment_attention(
    query: Tensor, key: Tensor, value: Tensor, keys: Segments, queries: Queries, features: FeatureMap, normalize: bool
) -> Pair:
    r"""Sums over groups of keys, weighted by a product of features.

    .. math:: N_j = \phi(q_j)^T \sum_{i \in g(j)} \phi(k_i) v_i^T, \quad Z_j = \phi(q_j)^T \sum_{i \in g(j)} \phi(k_i)

    >>> from anyorder.layers import Elu
    >>> ones, group = torch.ones(2, 1, 1, 1), Segments.build(torch.tensor([0, 0]), 1)
    >>> mean, _ = segment_attention(ones, ones, 3 * ones, group, Queries.build([group]), Elu().feature_map(None), True)
    >>> mean.flatten().tolist()
    [3.0, 3.0]

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
    half = value.dtype if value.dtype in (torch.bfloat16, torch.float16) else None
    if half is not None:
        query, key, value = query.float(), key.float(), value.float()
    problem = Problem(query, key, value, keys, queries, features, normalize)
    if is_exported():
        made = segment_reference.attend(problem)
    elif _is_plain(problem):
        with torch.autocast(query.device.type, enabled=False):
            made = segment_reference.attend(problem)
    else:
        made = torch.ops.anyorder.segment_attention(*problem.flat())
    return made if half is None else (made[0].to(half), made[1].to(half))


def _is_plain(problem: Problem) -> bool:
    """Whether plain tensor operations serve best: small inputs, and where derivatives of derivatives are asked for."""
    if torch.compiler.is_compiling():
        return False
    return (problem.size <= SMALL and forced() in (None, "reference")) or is_transformed()


def _choose(problem: Problem) -> str:
    """The version for a call: on the CPU, products of matrices where heads are wide and groups are large."""
    backend = backend_of(problem.query)
    if forced() is not None or problem.query.device.type != "cpu":
        return backend
    if problem.size <= SMALL or not INSTALLED["numba"]:
        return "reference"
    head = problem.num_features * (problem.query.shape[-1] + problem.value.shape[-1])
    rows = len(problem.keys.rows) + len(problem.queries.rows)  # the latter for each class
    if head >= WIDE and rows * problem.heads * head >= LONG * problem.keys.num_groups:
        return "products"
    from anyorder.ops import segment_cpu

    return "numba" if segment_cpu.ready(problem) else "reference"


_PROBLEM = """Tensor query, Tensor key, Tensor value, Tensor? directions, Tensor key_order, Tensor key_pointer,
    Tensor query_order, Tensor query_pointer, str kind, float eps, bool normalize"""


@torch.library.custom_op("anyorder::segment_attention", mutates_args=(), schema=f"({_PROBLEM}) -> (Tensor, Tensor)")
def _forward(*given: Any) -> Pair:
    problem = Problem.of(given)
    with torch.autocast(problem.query.device.type, enabled=False):
        backend = _choose(problem)
        if backend == "reference":
            sums, norms = segment_reference.attend(problem)  # may share memory, which an operator's results must not
            return sums.clone(memory_format=torch.contiguous_format), norms.clone(memory_format=torch.contiguous_format)
        # all is written where each query is in a group of each class
        whole = backend == "numba" and len(problem.queries.rows) == len(problem.query) * problem.classes
        make = problem.value.new_empty if whole else problem.value.new_zeros
        sums, norms = make(problem.sums_shape), make(problem.sums_shape[:-1])
        _version(backend).forward(problem, sums, norms)
        return sums, norms


@_forward.register_fake
def _(query, key, value, *rest):  # type: ignore[no-untyped-def]
    count = query.shape[0]  # len(query) would fix it for all graphs to come
    return value.new_empty(count, *value.shape[1:]), value.new_empty(count, *value.shape[1:3])


@torch.library.custom_op(
    "anyorder::segment_attention_backward",
    mutates_args=(),
    schema=f"({_PROBLEM}, Tensor sums, Tensor norms, Tensor grad_sums, Tensor grad_norms) -> (Tensor, Tensor, Tensor)",
)
def _backward(*given: Any) -> tuple[Tensor, Tensor, Tensor]:
    problem, results = Problem.of(given[:11]), given[11:]
    with torch.autocast(problem.query.device.type, enabled=False):
        parts = (problem.query, problem.key, problem.value)
        made = tuple(torch.zeros(part.shape, dtype=part.dtype, device=part.device) for part in parts)
        _version(_choose(problem)).backward(problem, *results, made)
        return made  # type: ignore[return-value]


def _version(backend: str) -> Any:
    """The module of a backend; those of Numba and Triton are imported where they are used."""
    if backend == "numba":
        from anyorder.ops import segment_cpu

        return segment_cpu
    if backend == "triton":
        from anyorder.ops import segment_triton

        return segment_triton
    return segment_products if backend == "products" else segment_reference


@_backward.register_fake
def _(query, key, value, *rest):  # type: ignore[no-untyped-def]
    return tuple(part.new_empty(part.shape) for part in (query, key, value))


def _setup(ctx: Any, inputs: Sequence[Any], output: Pair) -> None:
    *tensors, kind, eps, normalize = inputs
    ctx.save_for_backward(*tensors, *(output if normalize else ()))  # the gradient of N and Z does not need them
    ctx.options = (kind, eps, normalize)
    ctx.shapes = [part.shape for part in output]


def _gradient(ctx: Any, grad_sums: Tensor | None, grad_norms: Tensor | None) -> tuple[Tensor | None, ...]:
    saved = ctx.saved_tensors  # asked for once: a recomputing layer finds it again for that
    tensors, outputs = saved[:8], saved[8:]
    given = [
        tensors[0].new_zeros(shape) if grad is None else grad
        for grad, shape in zip((grad_sums, grad_norms), ctx.shapes, strict=True)
    ]
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():  # the gradient shall be differentiated, too
        grads = segment_reference.differentiable(Problem.of((*tensors, *ctx.options)), *given)
    else:
        grads = torch.ops.anyorder.segment_attention_backward(*tensors, *ctx.options, *(outputs or given), *given)
    return *grads, *[None] * 8


_forward.register_autograd(_gradient, setup_context=_setup)
