"""Segment linear attention by matrix products on blocks of rows: for wide heads, whose arithmetic outweighs everything else.

Group by group and block by block, so that phi of a block and the state of a group stay in cache. Any device and type.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from anyorder.ops.features import FeatureMap, Problem

BLOCK = 2**18
"""Features of a block: rows x heads x features."""


@dataclass(frozen=True)
class Ranges:
    """The rows of each group: where they begin and end in ``order``, and which stand together."""

    order: Tensor
    bounds: list[int]
    first: list[int | None]
    """The first row of a group whose rows stand together, else None."""

    @classmethod
    def build(cls, order: Tensor, pointer: Tensor) -> Ranges:
        bounds = pointer.tolist()
        if len(order) == 0:
            return cls(order, bounds, [None] * (len(bounds) - 1))
        starts, ends = pointer[:-1].clamp(max=len(order) - 1), (pointer[1:] - 1).clamp(min=0)
        first, last = order[starts].tolist(), order[ends].tolist()
        sizes = pointer.diff().tolist()
        rising = torch.ones(len(order) + 1, dtype=torch.int64, device=order.device)
        rising[1:-1] = order.diff() > 0  # at the first row of a group it does not matter: only the ends are compared
        falls = (1 - rising).cumsum(0)
        sorted_within = (falls[ends] == falls[starts]).tolist()
        whole = [ok and b - a == n - 1 for ok, a, b, n in zip(sorted_within, first, last, sizes, strict=True)]
        return cls(order, bounds, [a if ok else None for a, ok in zip(first, whole, strict=True)])

    def blocks(self, group: int, size: int) -> Iterator[tuple[slice, None] | tuple[None, Tensor]]:
        """The rows of a group, a block at a time: as a slice where they stand together, else one by one."""
        a, b, first = self.bounds[group], self.bounds[group + 1], self.first[group]
        for start in range(a, b, size):
            stop = min(start + size, b)
            if first is None:
                yield None, self.order[start:stop]
            else:
                yield slice(first + start - a, first + stop - a), None


Block = tuple[slice, None] | tuple[None, Tensor]


def _read(x: Tensor, block: Block) -> Tensor:
    """(row, head, channel) to (head, row, channel) for a block of rows."""
    rows, picked = block
    part = x[rows] if picked is None else x.index_select(0, picked)
    return part.transpose(0, 1).contiguous()


def _write(x: Tensor, block: Block, part: Tensor) -> None:
    rows, picked = block
    if picked is None:
        x[rows] = part.transpose(0, 1)
    else:
        x.index_copy_(0, picked, part.transpose(0, 1))


def _with_ones(value: Tensor) -> Tensor:
    return torch.cat([value, torch.ones_like(value[..., :1])], -1)


@dataclass(frozen=True)
class PosedProducts:
    """The arguments of a call, with classes and heads of keys and values on one axis."""

    query: Tensor
    key: Tensor
    value: Tensor
    phi: FeatureMap
    keys: Ranges
    queries: list[Ranges]

    @classmethod
    def build(cls, problem: Problem) -> PosedProducts:
        queries = [Ranges.build(problem.queries.rows, pointer) for pointer in problem.queries.pointer]
        keys = Ranges.build(problem.keys.rows, problem.keys.pointer)
        return cls(problem.query, problem.key.flatten(1, 2), problem.value.flatten(1, 2), problem.features, keys, queries)

    @property
    def features(self) -> int:
        return self.phi.width(self.query.shape[-1])

    def size(self, heads: int) -> int:
        """Rows of a block."""
        return max(32, BLOCK // max(heads * self.features, 1))

    def key_blocks(self, group: int) -> Iterator[Block]:
        return self.keys.blocks(group, self.size(self.key.shape[1]))

    def query_blocks(self, group: int, c: int) -> Iterator[Block]:
        return self.queries[c].blocks(group, self.size(self.query.shape[2]))

    def state(self, group: int) -> Tensor:
        """(class x head, feature, channel + 1): the sums of phi(k) v^T and, last, of phi(k)."""
        total = self.value.new_zeros(self.value.shape[1], self.features, self.value.shape[2] + 1)
        for block in self.key_blocks(group):
            phi = self.phi(_read(self.key, block))
            total.baddbmm_(phi.transpose(1, 2), _with_ones(_read(self.value, block)))
        return total

    def groups(self) -> Iterator[tuple[int, Tensor]]:
        """Groups that have keys and queries, with their states by class."""
        for group in range(len(self.keys.bounds) - 1):
            asked = any(each.bounds[group] < each.bounds[group + 1] for each in self.queries)
            if asked and self.keys.bounds[group] < self.keys.bounds[group + 1]:
                yield group, self.state(group).unflatten(0, (len(self.queries), -1))


def forward(given: Problem, sums: Tensor, norms: Tensor) -> None:
    """Fill ``sums`` (query, class, head, channel) and ``norms`` (query, class, head), which are zero before."""
    problem, normalize = PosedProducts.build(given), given.normalize
    tiny = torch.finfo(sums.dtype).tiny
    for group, states in problem.groups():
        for c, state in enumerate(states):
            for block in problem.query_blocks(group, c):
                answer = torch.bmm(problem.phi(_read(problem.query[:, c], block)), state)
                total, norm = answer[..., :-1], answer[..., -1:]
                if normalize:
                    total = total / norm.clamp(min=tiny)
                _write(sums[:, c], block, total)
                _write(norms[:, c].unsqueeze(-1), block, norm)


def backward(
    given: Problem, sums: Tensor, norms: Tensor, grad_sums: Tensor, grad_norms: Tensor, made: tuple[Tensor, ...]
) -> None:
    """Fill the gradients of query, key and value, which are zero before."""
    problem = PosedProducts.build(given)
    grad_query, grad_key, grad_value = made[0], made[1].flatten(1, 2), made[2].flatten(1, 2)
    for group, states in problem.groups():
        grad_states = torch.zeros_like(states)
        for c, (state, grad_state) in enumerate(zip(states, grad_states, strict=True)):
            for block in problem.query_blocks(group, c):
                phi = problem.phi(_read(problem.query[:, c], block))
                parts = [_read(part[:, c], block) for part in (grad_sums, sums)]
                parts += [_read(part[:, c].unsqueeze(-1), block) for part in (grad_norms, norms)]
                incoming = _incoming(*parts) if given.normalize else torch.cat([parts[0], parts[2]], -1)
                grad_state.baddbmm_(phi.transpose(1, 2), incoming)
                _write(grad_query[:, c], block, problem.phi.backward(torch.bmm(incoming, state.transpose(1, 2)), phi))
        grad_state = grad_states.flatten(0, 1)
        for block in problem.key_blocks(group):
            phi, value = problem.phi(_read(problem.key, block)), _with_ones(_read(problem.value, block))
            _write(grad_value, block, torch.bmm(phi, grad_state[..., :-1]))
            _write(grad_key, block, problem.phi.backward(torch.bmm(value, grad_state.transpose(1, 2)), phi))


def _incoming(grad: Tensor, quotient: Tensor, _: Tensor, norm: Tensor) -> Tensor:
    """The gradient of N and, last, of Z from that of N / Z; a query without keys has none."""
    tiny = torch.finfo(norm.dtype).tiny
    scaled = grad * torch.where(norm > tiny, 1 / norm.clamp(min=tiny), 0)
    return torch.cat([scaled, -(scaled * quotient).sum(-1, keepdim=True)], -1)
