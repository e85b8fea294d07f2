"""Segment linear attention as one operator (Sec. 4.3): sum phi(K) V^T over the keys of a group and apply its queries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from anyorder.layouts import Queries, Segments, Single
from anyorder.layouts.memory import is_exported, is_transformed
from anyorder.ops import segment_products
from anyorder.ops.backends import INSTALLED, backend_of, choice, here
from anyorder.ops.features import FeatureMap, Problem
from anyorder.ops.gather import highest_of, read_rows
from anyorder.ops.operators import Operator

WIDE = 1024  # features x channels of a head from which on products of matrices are faster than the plain version,
WIDEST = 8192  # and than loops, too,
LONG = 2**20  # where a group has so many of the former in all of its rows and heads
PAYS = 2**16  # numbers in all phi(k) v^T from which on loops are compiled in the background at once,
SMALL = 2**14  # and below which they are never called, so that the smallest trainings do not wait for them
MOST = 2**26  # of these that the plain version holds at once; more classes than that are done in turns
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
        made = plain_attention(problem)
    elif _is_plain(problem):
        if torch.is_autocast_enabled(query.device.type):
            with in_full(query):
                made = plain_attention(problem)
        else:
            made = plain_attention(problem)
    else:
        made = _segment_attention(*problem.flat())
    return made if half is None else (made[0].to(half), made[1].to(half))


def softmax_single(known: Single, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attention for (row, head, channel) where each group has one query, and all its keys are allowed.

    The weight of a key, exp(q.k), is then a feature of the key alone: the sums take linear time.
    """
    groups = known.groups
    scores = (read_rows(query, known.query_of_key) * key).sum(-1) * key.shape[-1] ** -0.5
    with torch.no_grad():
        highest = highest_of(scores, groups.ids, groups.num_groups)
    weights = (scores - highest.index_select(0, groups.ids)).exp()
    ones = weights.new_ones(query.shape[0], 1, weights.shape[1], 1)
    given = (weights[:, None, :, None], value[:, None], known.grouped.keys, known.grouped.queries)
    return segment_attention(ones, *given, FeatureMap("none"), True)[0][:, 0]


def _is_plain(problem: Problem) -> bool:
    """Whether plain tensor operations serve best: small inputs, and where derivatives of derivatives are asked for."""
    if torch.compiler.is_compiling():
        return False
    small = problem.size <= (SMALL if INSTALLED["numba"] else PAYS)  # nothing that may change until a layer is recomputed
    return (choice.backend in ("auto", "reference") and small) or is_transformed()


def _is_small(problem: Problem, added: bool) -> bool:
    """Whether an input is too small for compiled loops, or to have them compiled where they are not there."""
    if problem.size <= SMALL:
        return True
    if problem.size > PAYS or choice.compiling == "wait":
        return False
    from anyorder.ops import segment_cpu

    return not segment_cpu.there(problem, added)


def choose(problem: Problem, added: bool = False) -> str:
    """The version for a call: on the CPU, products of matrices where heads are wide and groups are large."""
    if getattr(here, "plain", False):
        return "reference"
    backend = backend_of(problem.query)
    if choice.backend != "auto" or problem.query.device.type != "cpu":
        return backend
    if not INSTALLED["numba"] or _is_small(problem, added):
        return "reference"
    wide = _is_wide(problem)
    if wide and _head(problem) >= WIDEST and not _has_few_keys(problem):
        return "products"
    from anyorder.ops import segment_cpu

    if segment_cpu.ready(problem, added):
        return "numba"
    return "products" if wide else "reference"


def _is_wide(problem: Problem) -> bool:
    """Whether heads are wide and groups are large."""
    head = _head(problem)
    rows = len(problem.keys.rows) + len(problem.queries.rows)  # the latter for each class
    return head >= WIDE and rows * problem.heads * head >= LONG * problem.keys.num_groups


def _head(problem: Problem) -> int:
    """Features x channels."""
    return problem.num_features * (problem.query.shape[-1] + problem.value.shape[-1])


def _has_few_keys(problem: Problem) -> bool:
    """Whether pairs of keys and queries take less than sums over keys, as loops know: in the mean over groups."""
    features, channels, groups = problem.num_features, problem.value.shape[-1], problem.keys.num_groups
    keys, queries = len(problem.keys.rows), len(problem.queries.rows) / problem.classes
    return 2 * keys * queries * (features + channels) <= groups * (keys + queries) * features * channels


_PROBLEM = """Tensor query, Tensor key, Tensor value, Tensor? directions, Tensor key_order, Tensor key_pointer,
    Tensor query_order, Tensor query_pointer, str kind, float eps, bool normalize"""


def in_full(tensor: Tensor) -> AbstractContextManager[Any]:
    """Without automatic mixed precision."""
    kind = tensor.device.type
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext()


def _compute(*given: Any) -> Pair:
    problem = Problem.of(given)
    with in_full(problem.query):
        backend = choose(problem)
        if backend == "reference":
            sums, norms = plain_attention(problem)  # may share memory, which an operator's results must not
            return sums.clone(memory_format=torch.contiguous_format), norms.clone(memory_format=torch.contiguous_format)
        # all is written where each query is in a group of each class
        whole = backend == "numba" and len(problem.queries.rows) == len(problem.query) * problem.classes
        make = problem.value.new_empty if whole else problem.value.new_zeros
        sums, norms = make(problem.sums_shape), make(problem.sums_shape[:-1])
        _version(backend).forward(problem, sums, norms)
        return sums, norms


def _shapes(query: Tensor, key: Tensor, value: Tensor, *rest: Any) -> Pair:
    count = query.shape[0]  # len(query) would fix it for all graphs to come
    return value.new_empty(count, *value.shape[1:]), value.new_empty(count, *value.shape[1:3])


def _compute_backward(*given: Any) -> tuple[Tensor, Tensor, Tensor]:
    problem, results = Problem.of(given[:11]), given[11:]
    with in_full(problem.query):
        parts = (problem.query, problem.key, problem.value)
        made = tuple(torch.zeros(part.shape, dtype=part.dtype, device=part.device) for part in parts)
        backend = choose(problem)
        backward: Any = _plain_backward if backend == "reference" else _version(backend).backward
        backward(problem, *results, made)
        return made  # type: ignore[return-value]


def _version(backend: str) -> Any:
    """The module of a backend; those of Numba and Triton are imported where they are used."""
    if backend == "numba":
        from anyorder.ops import segment_cpu

        return segment_cpu
    if backend == "triton":
        from anyorder.ops import segment_triton

        return segment_triton
    return segment_products


segment_attention_backward = Operator(
    "segment_attention_backward",
    _compute_backward,
    lambda query, key, value, *rest: tuple(part.new_empty(part.shape) for part in (query, key, value)),
    schema=f"({_PROBLEM}, Tensor sums, Tensor norms, Tensor grad_sums, Tensor grad_norms) -> (Tensor, Tensor, Tensor)",
)


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
        grads = _differentiable(Problem.of((*tensors, *ctx.options)), *given)
    else:
        grads = segment_attention_backward(*tensors, *ctx.options, *(outputs or given), *given)
    return *grads, *[None] * 8


_segment_attention = Operator(
    "segment_attention",
    _compute,
    _shapes,
    setup=_setup,
    gradient=_gradient,
    schema=f"({_PROBLEM}) -> (Tensor, Tensor)",
)


# The plain version: any device, any type, derivatives of any degree; the measure of all others.


def _turns(problem: Problem) -> Iterable[tuple[int, int]]:
    """Ranges of classes that are done at once."""
    turns = max(1, min(problem.classes, problem.size // MOST))
    return pairwise([problem.classes * n // turns for n in range(turns + 1)])


def plain_attention(problem: Problem) -> tuple[Tensor, Tensor]:
    """Sums (query, class, head, channel) and norms (query, class, head), some classes at a time."""
    if is_exported() or problem.size <= MOST:
        answer = _answer(problem, problem.queries, 0, problem.classes)
    else:
        turns = [(problem.queries.of(first, last), first, last) for first, last in _turns(problem)]
        answer = torch.cat([_answer(problem, *turn) for turn in turns], 1)
    sums, norms = answer[..., :-1], answer[..., -1]
    if problem.normalize:
        return divided(sums, norms.unsqueeze(-1)), norms.detach()
    return sums, norms


def divided(sums: Tensor, norms: Tensor) -> Tensor:
    """N / Z; where features underflow or there is no key, nothing is received and nothing has a gradient."""
    there = norms > torch.finfo(norms.dtype).tiny
    return torch.where(there, sums / torch.where(there, norms, 1), 0)


def _answer(problem: Problem, queries: Queries, first: int, last: int) -> Tensor:
    """(query, class, head, channel + 1): sums and, last, norms of some classes, whose queries are given."""
    width = last - first
    states = _states(problem, *_keys(problem, first, last))
    places = queries.rows * width + queries.classes  # of (query, class) pairs
    asking = problem.features(problem.query[:, first:last].flatten(0, 1).index_select(0, places))
    read = states.flatten(0, 1).index_select(0, queries.group * width + queries.classes)
    answer = torch.einsum("qhm,qhmc->qhc", asking, read)
    whole = answer.new_zeros(problem.query.shape[0] * width, *answer.shape[1:]).index_copy(0, places, answer)
    return whole.unflatten(0, (problem.query.shape[0], width))


def _keys(problem: Problem, first: int, last: int) -> tuple[Tensor, Tensor]:
    """phi(k) and (v, 1), both sorted by group."""
    rows = problem.keys.rows
    key, value = problem.key[:, first:last].index_select(0, rows), problem.value[:, first:last].index_select(0, rows)
    return problem.features(key), torch.cat([value, torch.ones_like(value[..., :1])], -1)


def _states(problem: Problem, phi: Tensor, widened: Tensor) -> Tensor:
    """(group, class, head, feature, channel + 1): the sums of phi(k) (v, 1)^T."""
    products = phi.unsqueeze(-1) * widened.unsqueeze(-2)
    return products.new_zeros(problem.keys.pointer.shape[0] - 1, *products.shape[1:]).index_add(
        0, problem.keys.group, products
    )


def _differentiable(problem: Problem, grad_sums: Tensor, grad_norms: Tensor) -> tuple[Tensor, ...]:
    """Gradients of query, key and value that can be differentiated again."""
    given = (problem.query, problem.key, problem.value)
    with torch.enable_grad():
        leaves = [part if part.requires_grad else part.detach().requires_grad_() for part in given]
        again = replace(problem, query=leaves[0], key=leaves[1], value=leaves[2])
        sums, norms = plain_attention(again)
        wanted, grads = ([sums], [grad_sums]) if problem.normalize else ([sums, norms], [grad_sums, grad_norms])
        return torch.autograd.grad(wanted, leaves, grads, create_graph=True, materialize_grads=True)


def _plain_backward(
    problem: Problem, sums: Tensor, norms: Tensor, grad_sums: Tensor, grad_norms: Tensor, made: tuple[Tensor, ...]
) -> None:
    """Fill the gradients of query, key and value, by the chain rule through the states of the groups."""
    if problem.normalize:  # of N and Z from that of N / Z
        tiny = torch.finfo(norms.dtype).tiny
        scale = torch.where(norms > tiny, 1 / norms.clamp(min=tiny), 0)
        grad_norms = -(grad_sums * sums).sum(-1) * scale
        grad_sums = grad_sums * scale.unsqueeze(-1)
    incoming = torch.cat([grad_sums, grad_norms.unsqueeze(-1)], -1)
    for first, last in _turns(problem):
        _turn_backward(problem, first, last, incoming[:, first:last], tuple(part[:, first:last] for part in made))


def _turn_backward(problem: Problem, first: int, last: int, incoming: Tensor, made: tuple[Tensor, ...]) -> None:
    width, keys, queries, features = last - first, problem.keys, problem.queries.of(first, last), problem.features
    phi_key, widened = _keys(problem, first, last)
    states = _states(problem, phi_key, widened)
    cells = queries.group * width + queries.classes
    phi_query = features(problem.query[:, first:last][queries.rows, queries.classes])
    received = incoming[queries.rows, queries.classes]
    products = phi_query.unsqueeze(-1) * received.unsqueeze(-2)
    grad_states = torch.zeros_like(states).flatten(0, 1).index_add_(0, cells, products).view_as(states)
    read = grad_states.index_select(0, keys.group)
    grad_query = torch.einsum("qhmc,qhc->qhm", states.flatten(0, 1).index_select(0, cells), received)
    grad_key = torch.einsum("kwhmc,kwhc->kwhm", read, widened)
    made[0][queries.rows, queries.classes] = features.backward(grad_query, phi_query)
    made[1].index_copy_(0, keys.rows, features.backward(grad_key, phi_key))
    made[2].index_copy_(0, keys.rows, torch.einsum("kwhm,kwhmc->kwhc", phi_key, read[..., :-1]))
