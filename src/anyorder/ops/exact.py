"""Exact linear attention of one class as one operator: signed sums with equalities only, added up in double precision.

Where few keys of a large group are allowed, a small difference of large numbers is left. Nothing in double precision is kept
for the backward pass but the norms.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import starmap
from typing import Any

import torch
from torch import Tensor

from anyorder.layouts import Exact, Queries, Segments
from anyorder.layouts.memory import is_transformed
from anyorder.ops.backends import plain_in_this_thread
from anyorder.ops.features import FeatureMap, Problem
from anyorder.ops.operators import Operator
from anyorder.ops.segment import choose, segment_attention, segment_attention_backward

Pair = tuple[Tensor, Tensor]


def exact_attention(
    query: Tensor, key: Tensor, value: Tensor, known: Exact, features: FeatureMap, normalize: bool
) -> Tensor:
    """What queries (query, 1, head, channel) receive of the keys that a class allows, in the type of ``value``."""
    if any(part.dtype in (torch.bfloat16, torch.float16) for part in (query, key, value)):
        wide = exact_attention(query.float(), key.float(), value.float(), known, features, normalize)
        return wide.to(value.dtype)
    if is_transformed() or torch.compiler.is_compiling():
        return _composite(query, key, value, known, features, normalize)[0]
    terms = known.terms
    lists = (
        [term.keys.rows for term in terms],
        [term.keys.pointer for term in terms],
        [term.queries.rows for term in terms],
        [term.queries.pointer for term in terms],
    )
    options = (known.empty, features.kind, features.eps, normalize)
    found: Pair = _exact_attention(query, key, value, features.directions, *lists, known.signs, *options)
    return found[0]


def _composite(query: Tensor, key: Tensor, value: Tensor, known: Any, features: FeatureMap, normalize: bool) -> Pair:
    """Answers in the type of ``value`` and norms in double, by operations with derivatives of any degree."""
    query, key, wide = (part.double().contiguous() for part in (query, key, value))
    sums = norms = query.new_zeros(())
    for sign, term in zip(known.signs, known.terms, strict=True):
        more = segment_attention(query, key, wide, term.keys, term.queries, features.double(), normalize=False)
        sums, norms = torch.add(sums, more[0], alpha=sign), torch.add(norms, more[1], alpha=sign)
    if normalize:
        sums = sums / norms.clamp(min=torch.finfo(norms.dtype).tiny).unsqueeze(-1)
    return sums.masked_fill(known.empty.view(-1, 1, 1, 1), 0).to(value.dtype), norms


class _Terms:
    """The arguments of the operator as a value that ``_composite`` takes."""

    def __init__(self, lists: Sequence[Any], signs: Sequence[int], empty: Tensor) -> None:
        self.signs, self.empty = signs, empty
        self.terms = list(starmap(_Term, zip(*lists, strict=True)))


class _Term:
    def __init__(self, key_rows: Tensor, key_pointer: Tensor, query_rows: Tensor, query_pointer: Tensor) -> None:
        self.keys, self.queries = Segments(key_rows, key_pointer), Queries(query_rows, query_pointer)


_SCHEMA = """(Tensor query, Tensor key, Tensor value, Tensor? directions, Tensor[] key_rows, Tensor[] key_pointers,
    Tensor[] query_rows, Tensor[] query_pointers, int[] signs, Tensor empty, str kind, float eps,
    bool normalize) -> (Tensor, Tensor)"""


def _compute(*given: Any) -> Pair:
    known, features = _Terms(given[4:8], *given[8:10]), FeatureMap(given[10], given[3], given[11])
    (query, key, value), normalize = given[:3], given[12]
    problems = _posed((query, key, value), known, features)
    version = _choose(problems)
    if version != "numba":
        with _without_other_loops(version):
            found, norms = _composite(query, key, value, known, features, normalize)
        return found, norms.contiguous()
    from anyorder.ops import segment_cpu

    sums = value.new_zeros(problems[0].sums_shape, dtype=torch.float64)
    norms = value.new_zeros(problems[0].sums_shape[:-1], dtype=torch.float64)
    for sign, problem in zip(known.signs, problems, strict=True):
        segment_cpu.forward(problem, sums, norms, sign)
    if normalize:
        sums.div_(norms.clamp(min=torch.finfo(norms.dtype).tiny).unsqueeze(-1))
    return sums.masked_fill_(known.empty.view(-1, 1, 1, 1), 0).to(value.dtype), norms


def _posed(inputs: tuple[Tensor, ...], known: _Terms, features: FeatureMap) -> list[Problem]:
    """Each term as a problem of its own."""
    query, key, value = inputs
    return [Problem(query, key, value, term.keys, term.queries, features, normalize=False) for term in known.terms]


def _choose(problems: Sequence[Problem]) -> str:
    """The version for a call: with Numba, loops read singles and add all terms up in double."""
    largest = max(problems, key=lambda each: each.size)
    version, kinds = choose(largest, added=True), {part.dtype for part in (largest.query, largest.key, largest.value)}
    return "double" if version == "numba" and kinds not in ({torch.float32}, {torch.float64}) else version


def _without_other_loops(version: str) -> AbstractContextManager[None]:
    """While loops that add are compiled, those that write are not: they would be compiled for nothing."""
    return plain_in_this_thread() if version == "reference" else nullcontext()


def _shapes(query: Tensor, key: Tensor, value: Tensor, *rest: Any) -> Pair:
    count = query.shape[0]
    return value.new_empty(count, *value.shape[1:]), value.new_empty(count, *value.shape[1:3], dtype=torch.float64)


def _setup(ctx: Any, inputs: Sequence[Any], output: Pair) -> None:
    query, key, value, directions, *lists, signs, empty, kind, eps, normalize = inputs
    ctx.save_for_backward(query, key, value, directions, empty, *output)
    ctx.lists, ctx.options = lists, (signs, kind, eps, normalize)


def _gradient(ctx: Any, grad: Tensor, _: Tensor | None) -> tuple[Any, ...]:
    query, key, value, directions, empty, found, norms = ctx.saved_tensors
    signs, kind, eps, normalize = ctx.options
    known, features = _Terms(ctx.lists, signs, empty), FeatureMap(kind, directions, eps)
    if torch.is_grad_enabled():  # the gradient shall be differentiated, too
        grads: Sequence[Tensor] = _differentiable((query, key, value), known, features, normalize, grad)
    else:
        grads = _grads((query, key, value), known, features, normalize, (grad, found, norms))
    return *grads, None, *[[None] * len(signs)] * 4, *[None] * 5


def _grads(
    inputs: tuple[Tensor, ...], known: _Terms, features: FeatureMap, normalize: bool, results: tuple[Tensor, ...]
) -> list[Tensor]:
    """The chain rule, term by term."""
    grad, found, norms = results
    grad = grad.to(torch.float64, copy=True).masked_fill_(known.empty.view(-1, 1, 1, 1), 0)
    grad_norms = torch.zeros_like(norms)
    if normalize:
        tiny = torch.finfo(norms.dtype).tiny
        grad.div_(norms.clamp(min=tiny).unsqueeze(-1))
        grad_norms = torch.where(norms > tiny, -(grad * found).sum(-1), 0)
    problems = _posed(inputs, known, features)
    version = _choose(problems)
    if version == "numba":
        from anyorder.ops import segment_cpu

        added = tuple(part.new_zeros(part.shape, dtype=torch.float64) for part in inputs)
        for sign, problem in zip(known.signs, problems, strict=True):
            segment_cpu.backward(problem, grad, grad_norms, grad, grad_norms, added, sign)
        return [made.to(part.dtype) for made, part in zip(added, inputs, strict=True)]
    with _without_other_loops(version):
        return _grads_by_term(inputs, known, features, grad, grad_norms)


def _grads_by_term(
    inputs: tuple[Tensor, ...], known: _Terms, features: FeatureMap, grad: Tensor, grad_norms: Tensor
) -> list[Tensor]:
    """The same with the operator of relaxed attention."""
    query, key, value = (part.double().contiguous() for part in inputs)
    total: list[Tensor] = []
    for sign, term in zip(known.signs, known.terms, strict=True):
        incoming = (grad * sign, grad_norms * sign)
        problem = Problem(query, key, value, term.keys, term.queries, features.double(), normalize=False)
        more = segment_attention_backward(*problem.flat(), *incoming, *incoming)
        total = [a.add_(b) for a, b in zip(total, more, strict=True)] if total else list(more)
    return [made.to(part.dtype) for made, part in zip(total, inputs, strict=True)]


def _differentiable(
    inputs: tuple[Tensor, ...], known: _Terms, features: FeatureMap, normalize: bool, grad: Tensor
) -> tuple[Tensor, ...]:
    """Gradients that can be differentiated again."""
    with torch.enable_grad():
        leaves = [part if part.requires_grad else part.detach().requires_grad_() for part in inputs]
        found, _ = _composite(leaves[0], leaves[1], leaves[2], known, features, normalize)
        return torch.autograd.grad([found], leaves, [grad], create_graph=True, materialize_grads=True)


_exact_attention = Operator("exact_attention", _compute, _shapes, setup=_setup, gradient=_gradient, schema=_SCHEMA)
