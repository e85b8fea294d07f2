"""Softmax attention over groups of keys: along the keys where a group has one query, else tile by tile."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from anyorder.algebra import EquivalenceClass, Pool
from anyorder.layers.kernels import FeatureMap
from anyorder.layouts import Plan
from anyorder.ops.segment import segment_attention
from anyorder.ops.tiles import Tile, cut_tiles


def softmax_attention(plan: Plan, cls: EquivalenceClass, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    r"""Attention over exactly the keys of a class, for each head (Eq. 7-9).

    .. math:: Y_j = \sum_{i | (i,j) \in \mu} softmax_i(Q_j . K_i / \sqrt d) V_i

    Args:
        query: (query, head, channel), the entries of the target pattern.
        key, value: (key, head, channel), the entries of the source pattern.
    """
    attend = _attend_tiles if cls.unmatched_target else _attend_alone
    return attend(plan, cls, query, key, value)


def prepare_softmax(plan: Plan, cls: EquivalenceClass) -> None:
    """Work out now what softmax attention of a class needs to know."""
    if cls.unmatched_target:
        cut_tiles(plan, cls)
    else:
        plan.keys(cls), plan.asked((cls,)), plan.askers(cls)


def _attend_alone(plan: Plan, cls: EquivalenceClass, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """A class that matches all nodes of its output entries: each group has one query, and all its keys are allowed.

    The weight of a key, exp(q.k), is then a feature of the key alone: the sums take linear time.
    """
    ask, groups = plan.askers(cls), plan.groups(Pool(cls.source, cls.matched_source))
    scores = (ask(query) * key).sum(-1) * key.shape[-1] ** -0.5
    seen = scores.detach()
    index = groups.ids.unsqueeze(1).expand_as(seen)
    highest = seen.new_full((groups.num_groups, seen.shape[1]), -torch.inf).scatter_reduce(0, index, seen, "amax")
    weights = (scores - highest.index_select(0, groups.ids)).exp()
    ones = weights.new_ones(len(query), 1, weights.shape[1], 1)
    plain = FeatureMap("none", None, 0.0)
    asked = plan.asked((cls,))
    return segment_attention(ones, weights[:, None, :, None], value[:, None], plan.keys(cls), asked, plain, True)[0][:, 0]


def _attend_tiles(plan: Plan, cls: EquivalenceClass, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    cut = cut_tiles(plan, cls)
    if len(cut) == 0:
        return value.new_zeros(len(query), *value.shape[1:])
    again = torch.is_grad_enabled() and len(cut) > 1
    parts = []
    for tile in cut.tiles:
        if again:  # keep the inputs only, so that training needs the memory of one tile too
            parts.append(checkpoint(_attend, tile, query, key, value, use_reentrant=False))
        else:
            parts.append(_attend(tile, query, key, value))
    rows = torch.cat(parts)
    if cut.places is not None:
        rows = rows.index_select(0, cut.places)
    return rows.new_zeros(len(query), *rows.shape[1:]).index_copy(0, cut.queries, rows)


def _attend(tile: Tile, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    mask, empty = tile.allowed(), None
    if mask is not None:
        empty = ~mask.any(-1, keepdim=True)  # such a query attends to nothing: it may look anywhere and is then cleared
        mask = (mask | empty).unsqueeze(1)
    out = scaled_dot_product_attention(
        _pick(query, tile.queries), _pick(key, tile.keys), _pick(value, tile.keys), attn_mask=mask
    ).transpose(1, 2)
    if empty is not None:
        out = out.masked_fill(empty.unsqueeze(-1), 0)
    return out.flatten(0, 1)


def _pick(rows: Tensor, index: Tensor) -> Tensor:
    return rows.index_select(0, index.clamp(min=0).flatten()).unflatten(0, index.shape).transpose(1, 2)
