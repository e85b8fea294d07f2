"""Attention tile by tile, whatever compares a query with a key."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from anyorder.layouts import Tile, Tiling
from anyorder.layouts.memory import is_exported, is_transformed, with_zeros

KEPT = 2**22
"""Pairs for all heads up to which a training keeps what it finds for each; more are found again tile by tile."""

Attending = Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]
"""Queries, keys and values (tile, head, place, channel) and which keys a query may read (tile, 1, query, key) to answers."""


def over_tiles(tiling: Tiling, attend: Attending, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """What the queries of a class receive of exactly its keys, for (row, head, channel); a query without keys gets zeros."""
    if len(tiling) == 0:  # zeros that still belong to the graph of the inputs
        nothing = (query[:0].sum() + key[:0].sum() + value[:0].sum()).to(value.dtype)
        return value.new_zeros(len(query), *value.shape[1:]) + nothing
    again = torch.is_grad_enabled() and not is_transformed() and len(tiling) > 1
    again = again and tiling.num_pairs * query.shape[1] > KEPT
    parts = []
    for tile in tiling.tiles:
        given = (tile, attend, query, key, value)
        if again:  # keep the inputs only, so that training needs the memory of one tile too
            parts.append(checkpoint(_attend, *given, use_reentrant=False, preserve_rng_state=False))
        else:
            parts.append(_attend(*given))
    rows = torch.cat(parts)
    if tiling.places is not None:
        rows = rows.index_select(0, tiling.places)
    return rows.new_zeros(query.shape[0], *rows.shape[1:]).index_copy(0, tiling.queries, rows)


def _attend(tile: Tile, attend: Attending, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    queries, keys = tile.queries.padded(), tile.keys.padded()
    mask, empty = tile.allowed(queries, keys), None
    if mask is not None:
        empty = ~mask.any(-1, keepdim=True)  # such a query attends to nothing: it may look anywhere and is then cleared
        mask = (mask | empty).unsqueeze(1)
    asking = _pick(query, queries, tile.queries.has_gaps)
    asked, answers = (_pick(rows, keys, tile.keys.has_gaps) for rows in (key, value))
    out = attend(asking, asked, answers, mask).transpose(1, 2)
    if empty is not None:
        out = out.masked_fill(empty.unsqueeze(-1), 0)
    return out.flatten(0, 1)


def _pick(rows: Tensor, index: Tensor, is_padded: bool) -> Tensor:
    """Rows of a tile; padding is zero, whatever the row that stands in for it holds."""
    if is_exported():
        rows = with_zeros(rows)
    picked = rows.index_select(0, index.clamp(min=0).flatten()).unflatten(0, index.shape)
    if is_padded:
        picked = picked.masked_fill((index < 0)[..., None, None], 0)
    return picked.transpose(1, 2)
