"""Segment linear attention with plain tensor operations: any device, any type; the measure of all other versions.

Autograd, torch.func and derivatives of any degree go through it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from anyorder.ops.problem import Problem

MOST = 2**26  # numbers in phi(k) v^T that are held at once; more classes than that are done in turns


def attend(problem: Problem) -> tuple[Tensor, Tensor]:
    """Sums (query, class, head, channel) and norms (query, class, head), some classes at a time."""
    turns = max(1, min(problem.classes, problem.size // MOST))
    if turns == 1:
        answer = _answer(problem, 0, problem.classes)
    else:
        marks = [problem.classes * n // turns for n in range(turns + 1)]
        answer = torch.cat([_answer(problem, a, b) for a, b in zip(marks[:-1], marks[1:], strict=True)], 1)
    sums, norms = answer[..., :-1], answer[..., -1]
    if problem.normalize:  # where features underflow or there is no key, nothing is received and nothing has a gradient
        there = norms > torch.finfo(norms.dtype).tiny
        sums = torch.where(there.unsqueeze(-1), sums / torch.where(there, norms, 1).unsqueeze(-1), 0)
    return sums, norms.detach() if problem.normalize else norms


def _answer(problem: Problem, first: int, last: int) -> Tensor:
    """(query, class, head, channel + 1): sums and, last, norms of some classes."""
    keys, queries, phi = problem.keys, problem.queries.of(first, last), problem.features
    key, value = (part[:, first:last].index_select(0, keys.rows) for part in (problem.key, problem.value))
    widened = torch.cat([value, torch.ones_like(value[..., :1])], -1)
    products = phi(key).unsqueeze(-1) * widened.unsqueeze(-2)
    states = products.new_zeros(keys.num_groups, *products.shape[1:]).index_add(0, keys.group, products)
    places = queries.rows * (last - first) + queries.classes  # of (query, class) pairs
    asking = phi(problem.query[:, first:last].flatten(0, 1).index_select(0, places))
    read = states.flatten(0, 1).index_select(0, queries.group * (last - first) + queries.classes)
    answer = torch.einsum("qhm,qhmc->qhc", asking, read)
    whole = answer.new_zeros(len(problem.query) * (last - first), *answer.shape[1:]).index_copy(0, places, answer)
    return whole.unflatten(0, (len(problem.query), last - first))


def gradients(
    problem: Problem, grad_sums: Tensor, grad_norms: Tensor, *, create_graph: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of query, key and value, by autograd."""
    given = (problem.query, problem.key, problem.value)
    with torch.enable_grad():
        leaves = given if create_graph else tuple(part.detach().requires_grad_() for part in given)
        again = Problem(*leaves, problem.keys, problem.queries, problem.features, problem.normalize)
        sums, norms = attend(again)
        wanted, grads = ([sums], [grad_sums]) if problem.normalize else ([sums, norms], [grad_sums, grad_norms])
        made = torch.autograd.grad(wanted, leaves, grads, create_graph=create_graph, materialize_grads=True)
    return made[0], made[1], made[2]
