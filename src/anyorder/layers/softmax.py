"""Softmax attention over groups of keys, tile by tile."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from anyorder.algebra import EquivalenceClass
from anyorder.layouts import Plan, Tile, cut_tiles


def softmax_attention(plan: Plan, cls: EquivalenceClass, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    r"""Attention over exactly the keys of a class, for each head (Eq. 7-9).

    .. math:: Y_j = \sum_{i | (i,j) \in \mu} softmax_i(Q_j . K_i / \sqrt d) V_i

    Args:
        query: (query, head, channel), the entries of the target pattern.
        key, value: (key, head, channel), the entries of the source pattern.
    """
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
