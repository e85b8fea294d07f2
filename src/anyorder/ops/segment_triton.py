"""Segment linear attention on the GPU: one program for each group, class and head, compiled by Triton for its widths.

phi(K), phi(Q) and the products phi(K) V^T are never stored. Long groups are cut into pieces of fixed length whose states are
added up in order, so that a hub or a whole graph is shared among programs and the result is the same every time. Where
the groups are cut is worked out on the device, within bounds that follow from the shapes: the host never waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import triton
from torch import Tensor

from anyorder.ops import segment_blocks as blocks
from anyorder.ops.features import FeatureMap, Problem

PIECE = 4096  # keys or queries of a piece; groups with more than this are cut
ROWS = 16  # keys or queries of a block
WIDEST = 32  # channels or features that a program holds at once, without spilling registers (benchmarks/gpu_kernels.py);
# wider ones take several turns


@dataclass(frozen=True, eq=False)
class PieceRanges:
    """PieceRanges of entries, each of one class (``row``) and one state (``slot``)."""

    rows: Tensor
    first: Tensor
    last: Tensor
    row: Tensor
    slot: Tensor
    slot_first: Tensor
    """The ranges of a slot: from here ..."""
    slot_last: Tensor
    """... to here."""


@dataclass(frozen=True, eq=False)
class Turn:
    """A block of features and a block of channels, and the options that all kernels share."""

    start: dict[str, int]
    shared: dict[str, Any]
    widths: dict[str, int]

    @property
    def backward(self) -> dict[str, Any]:
        """The options of kernels of the backward pass, so that no thread spills registers (benchmarks/gpu_kernels.py)."""
        options = {**self.start, **self.shared, **self.widths}
        if self.shared["TURNED"] and self.widths["BM"] == WIDEST:
            if self.shared["BD"] == WIDEST:
                options["num_warps"] = 8
            elif torch.version.hip is None:
                options["maxnreg"] = 200  # the assembler would take fewer, for more programs at once
        return options


@dataclass(frozen=True, eq=False)
class PosedKernels:
    """The tensors of one call with whole rows, and how its groups are cut."""

    query: Tensor
    key: Tensor
    value: Tensor
    directions: Tensor
    features: FeatureMap
    short_keys: PieceRanges
    short_queries: PieceRanges
    long_keys: PieceRanges | None
    long_queries: PieceRanges | None
    num_groups: int

    @property
    def classes(self) -> int:
        return self.query.shape[1]

    @property
    def heads(self) -> int:
        return self.query.shape[2]

    @property
    def strides(self) -> tuple[int, int, int]:
        return self.query.stride(0), self.key.stride(0), self.value.stride(0)

    def turns(self) -> Iterator[Turn]:
        """Blocks of features and channels; with more than one, results are added to those before."""
        width, wide_value = self.query.shape[3], self.value.shape[3]
        features = self.features.width(width)
        of_channel, of_value, of_feature = (min(_power(n), WIDEST) for n in (width, wide_value, features))
        more = features > of_feature or wide_value > of_value
        value, gradient = blocks.formulas(self.features.kind)
        formulas = {"EPS": self.features.eps, "VALUE": value, "GRADIENT": gradient}
        options = {**formulas, "TURNED": self.features.directions is not None, "D": width, "V": wide_value, "M": features}
        sizes = {"BN": ROWS, "BD": of_channel, "num_warps": 1 if max(of_feature, of_value) <= 16 else 4}
        for feature in range(0, features, of_feature):
            for channel in range(0, wide_value, of_value):
                yield Turn(
                    {"m0": feature, "v0": channel},
                    {**options, **sizes, "ADD": more},
                    {"BV": of_value, "BM": of_feature},
                )


def _power(width: int) -> int:
    """The power of two that holds a width, at least what a matrix product takes."""
    return max(16, triton.next_power_of_2(width))


def pose(problem: Problem) -> PosedKernels:
    """Lay the tensors out and cut the groups."""
    directions, keys, queries = problem.features.directions, problem.keys, problem.queries
    given = problem.key if directions is None else directions.detach().to(problem.key.dtype).contiguous()
    pointer = keys.pointer.expand(problem.classes, -1)
    long = torch.maximum(keys.pointer.diff(), queries.pointer.diff().amax(0)) > PIECE
    most_slots = len(keys.rows) // PIECE + len(queries.rows) // PIECE
    cut = (most_slots, long)
    most_keys = problem.classes * (len(keys.rows) // PIECE + most_slots)
    most_queries = len(queries.rows) // PIECE + problem.classes * most_slots
    return PosedKernels(
        _whole(problem.query),
        _whole(problem.key),
        _whole(problem.value),
        given,
        problem.features,
        _uncut(keys.rows, pointer, long),
        _uncut(queries.rows, queries.pointer, long),
        _cut(keys.rows, pointer, most_keys, *cut) if most_slots else None,
        _cut(queries.rows, queries.pointer, most_queries, *cut) if most_slots else None,
        len(long),
    )


def _whole(tensor: Tensor) -> Tensor:
    """A (row, class, head, channel) tensor, copied only if its rows are not whole."""
    _, _, heads, width = tensor.shape
    return tensor if tensor.stride()[1:] == (heads * width, width, 1) else tensor.contiguous()


def _uncut(order: Tensor, pointer: Tensor, long: Tensor) -> PieceRanges:
    """One range for each class and group, empty where the group is long."""
    first = pointer[:, :-1].contiguous()
    last = torch.where(long, first, pointer[:, 1:])
    return PieceRanges(order, first, last, first, first, first, first)


def _cut(order: Tensor, pointer: Tensor, most: int, most_slots: int, long: Tensor) -> PieceRanges:
    """Pieces of the long groups, at most ``most``; those that are not needed are empty."""
    classes, groups = len(pointer), len(long)
    count = torch.where(long, (pointer.diff() + PIECE - 1) // PIECE, 0).flatten()
    ends = count.cumsum(0)
    piece = torch.arange(most, device=order.device)
    owner = torch.searchsorted(ends, piece, right=True)
    there = owner < len(ends)
    owner = owner.clamp(max=len(ends) - 1)
    first = pointer[:, :-1].flatten()[owner] + (piece - (ends - count)[owner]) * PIECE
    last = torch.where(there, torch.minimum(first + PIECE, pointer[:, 1:].flatten()[owner]), first)
    slot_of_group = torch.where(long, long.cumsum(0) - 1, most_slots)
    group_of_slot = long.new_zeros(most_slots + 1, dtype=torch.int64)
    group_of_slot[slot_of_group] = torch.arange(groups, device=order.device)
    of_slot = (torch.arange(classes, device=order.device)[:, None] * groups + group_of_slot[:-1]).flatten()
    row = owner // groups
    slot = row * most_slots + slot_of_group[owner % groups].clamp(max=most_slots - 1)
    return PieceRanges(order, first, last, row, slot, (ends - count)[of_slot], ends[of_slot])


def forward(given: Problem, sums: Tensor, norms: Tensor) -> None:
    """Fill ``sums`` (query, class, head, channel) and ``norms`` (query, class, head), which are zero before."""
    problem, normalize = pose(given), given.normalize
    tiny = torch.finfo(norms.dtype).tiny
    turns = list(problem.turns())
    for turn in turns:
        last = {"TINY": tiny, "NORMALIZE": normalize and len(turns) == 1}
        _forward(problem, turn, sums, norms, last)
    if normalize and len(turns) > 1:
        sums.div_(norms.clamp(min=tiny).unsqueeze(-1))


def _forward(problem: PosedKernels, turn: Turn, sums: Tensor, norms: Tensor, last: dict[str, Any]) -> None:
    p, keys, queries = problem, problem.short_keys, problem.short_queries
    wide = p.classes * p.heads
    options = {**turn.start, **turn.shared, **turn.widths}
    if p.num_groups:
        blocks.forward_groups[p.num_groups, wide](
            p.query, p.key, p.value, p.directions, *p.strides, keys.rows, keys.first, keys.last,
            queries.rows, queries.first, queries.last, p.num_groups, p.heads, wide, sums, norms, **options, **last,
        )  # fmt: skip
    if p.long_keys is None or p.long_queries is None:
        return
    states = _states(problem, turn, p.long_keys)
    queries = p.long_queries
    blocks.answer_pieces[len(queries.first), p.heads](
        p.query, p.directions, p.strides[0], queries.rows, queries.first, queries.last, queries.row, queries.slot,
        p.heads, wide, states, sums, norms, **options, **last,
    )  # fmt: skip


def backward(
    given: Problem, sums: Tensor, norms: Tensor, grad_sums: Tensor, grad_norms: Tensor, made: tuple[Tensor, ...]
) -> None:
    """Fill the gradients of query, key and value, which are zero before."""
    problem = pose(given)
    if given.normalize:  # of N and Z from that of N / Z
        tiny = torch.finfo(norms.dtype).tiny
        scale = torch.where(norms > tiny, 1 / norms.clamp(min=tiny), 0)
        grad_norms = -(grad_sums * sums).sum(-1) * scale
        grad_sums = grad_sums * scale.unsqueeze(-1)
    incoming = (grad_sums.contiguous(), grad_norms.contiguous())
    for turn in problem.turns():
        _backward(problem, turn, incoming, made)


def _backward(problem: PosedKernels, turn: Turn, incoming: tuple[Tensor, Tensor], made: tuple[Tensor, ...]) -> None:
    p, keys, queries = problem, problem.short_keys, problem.short_queries
    wide = p.classes * p.heads
    options = turn.backward
    if p.num_groups:
        blocks.backward_groups[p.num_groups, wide](
            p.query, p.key, p.value, p.directions, *p.strides, keys.rows, keys.first, keys.last,
            queries.rows, queries.first, queries.last, p.num_groups, p.heads, wide, *incoming, *made, **options,
        )  # fmt: skip
    if p.long_keys is None or p.long_queries is None:
        return
    keys, queries = p.long_keys, p.long_queries
    states = _states(problem, turn, keys)
    parts = _room(problem, turn, len(queries.first))
    blocks.ask_pieces[len(queries.first), p.heads](
        p.query, p.directions, p.strides[0], queries.rows, queries.first, queries.last, queries.row, queries.slot,
        p.heads, wide, states, *incoming, made[0], parts, **options,
    )  # fmt: skip
    blocks.give_pieces[len(keys.first), p.heads](
        p.key, p.value, p.directions, *p.strides[1:], keys.rows, keys.first, keys.last, keys.row, keys.slot,
        p.heads, wide, _total(problem, turn, queries, parts), made[1], made[2], **options,
    )  # fmt: skip


def _states(problem: PosedKernels, turn: Turn, keys: PieceRanges) -> Tensor:
    """The state of each long group, for each class and head."""
    p = problem
    parts = _room(problem, turn, len(keys.first))
    options = {**turn.start, **turn.shared, **turn.widths}
    del options["ADD"]
    blocks.absorb_pieces[len(keys.first), p.heads](
        p.key, p.value, p.directions, *p.strides[1:], keys.rows, keys.first, keys.last, keys.row, p.heads, parts, **options
    )
    return _total(problem, turn, keys, parts)


def _total(problem: PosedKernels, turn: Turn, ranges: PieceRanges, parts: Tensor) -> Tensor:
    total = _room(problem, turn, len(ranges.slot_first))
    blocks.add_states[len(ranges.slot_first), problem.heads](
        parts, ranges.slot_first, ranges.slot_last, problem.heads, total, **turn.widths
    )
    return total


def _room(problem: PosedKernels, turn: Turn, count: int) -> Tensor:
    features, channels = turn.widths["BM"], turn.widths["BV"]
    return problem.value.new_empty(count, problem.heads, features * channels + features)
