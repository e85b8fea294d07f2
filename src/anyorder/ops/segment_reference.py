"""Segment linear attention with plain tensor operations: any device, any type; the measure of all other versions.

Autograd, torch.func and derivatives of any degree go through ``attend``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import torch
from torch import Tensor

from anyorder.layouts import Queries
from anyorder.layouts.memory import is_exported
from anyorder.ops.problem import Problem

MOST = 2**26  # numbers in phi(k) v^T that are held at once; more classes than that are done in turns


def _turns(problem: Problem) -> Iterable[tuple[int, int]]:
    """Ranges of classes that are done at once."""
    turns = max(1, min(problem.classes, problem.size // MOST))
    return pairwise([problem.classes * n // turns for n in range(turns + 1)])


def attend(problem: Problem) -> tuple[Tensor, Tensor]:
    """Sums (query, class, head, channel) and norms (query, class, head), some classes at a time."""
    if is_exported() or problem.size <= MOST:
        answer = _answer(problem, problem.queries, 0, problem.classes)
    else:
        turns = [(problem.queries.of(first, last), first, last) for first, last in _turns(problem)]
        answer = torch.cat([_answer(problem, *turn) for turn in turns], 1)
    sums, norms = answer[..., :-1], answer[..., -1]
    if problem.normalize:  # where features underflow or there is no key, nothing is received and nothing has a gradient
        there = norms > torch.finfo(norms.dtype).tiny
        sums = torch.where(there.unsqueeze(-1), sums / torch.where(there, norms, 1).unsqueeze(-1), 0)
        norms = norms.detach()
    return sums, norms


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


def differentiable(problem: Problem, grad_sums: Tensor, grad_norms: Tensor) -> tuple[Tensor, ...]:
    """Gradients of query, key and value that can be differentiated again."""
    given = (problem.query, problem.key, problem.value)
    with torch.enable_grad():
        leaves = [part if part.requires_grad else part.detach().requires_grad_() for part in given]
        again = replace(problem, query=leaves[0], key=leaves[1], value=leaves[2])
        sums, norms = attend(again)
        wanted, grads = ([sums], [grad_sums]) if problem.normalize else ([sums, norms], [grad_sums, grad_norms])
        return torch.autograd.grad(wanted, leaves, grads, create_graph=True, materialize_grads=True)


def backward(
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
