"""Softmax attention over groups of keys, tile by tile or over a list of pairs."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from anyorder.layouts import EntryPairs, Tile, Tiling
from anyorder.layouts.memory import is_exported, is_transformed
from anyorder.layouts.tiles import with_one_more
from anyorder.ops.backends import choice
from anyorder.ops.gather import highest_of

SMALL = 2**16
"""Pairs of queries and keys, for all heads, up to which the formula is written out; the fused version derives once only."""
KEPT = 2**20
"""Pairs for all heads up to which a training keeps what it finds for each; more are found again tile by tile."""


def softmax_pairs(known: EntryPairs, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attention over a list of pairs, for (row, head, channel)."""
    scores = (query[known.target] * key[known.source]).sum(-1) * key.shape[-1] ** -0.5
    with torch.no_grad():
        highest = highest_of(scores, known.target, known.num_targets)
    weights = (scores - highest[known.target]).exp()
    norms = weights.new_zeros(known.num_targets, weights.shape[1]).index_add(0, known.target, weights)
    shares = weights / norms[known.target]
    out = value.new_zeros(known.num_targets, *value.shape[1:])
    return out.index_add(0, known.target, (shares.unsqueeze(-1) * value[known.source]).to(value.dtype))


def softmax_tiles(tiling: Tiling, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    r"""Attention over exactly the keys of a class, for (row, head, channel) (Eq. 10 and 12).

    .. math:: Y_j = \sum_{i | (i,j) \in \mu} softmax_i(Q_j . K_i / \sqrt d) V_i
    """
    if len(tiling) == 0:  # zeros that still belong to the graph of the inputs
        nothing = (query[:0].sum() + key[:0].sum() + value[:0].sum()).to(value.dtype)
        return value.new_zeros(len(query), *value.shape[1:]) + nothing
    many = len(tiling) > 1 and tiling.num_pairs * query.shape[1] > KEPT
    again = many and torch.is_grad_enabled() and not is_transformed()
    parts = []
    for tile in tiling.tiles:
        if again:  # keep the inputs only, so that training needs the memory of one tile too
            parts.append(checkpoint(_attend, tile, query, key, value, use_reentrant=False, preserve_rng_state=False))
        else:
            parts.append(_attend(tile, query, key, value))
    rows = torch.cat(parts)
    if tiling.places is not None:
        rows = rows.index_select(0, tiling.places)
    return rows.new_zeros(query.shape[0], *rows.shape[1:]).index_copy(0, tiling.queries, rows)


def _attend(tile: Tile, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    queries, keys = tile.queries.padded(), tile.keys.padded()
    mask, empty = tile.allowed(queries, keys), None
    if mask is not None:
        empty = ~mask.any(-1, keepdim=True)  # such a query attends to nothing: it may look anywhere and is then cleared
        mask = (mask | empty).unsqueeze(1)
    asking = _pick(query, queries, tile.queries.has_gaps)
    asked, answers = (_pick(rows, keys, tile.keys.has_gaps) for rows in (key, value))
    attend = _plain_attention if _is_plain(asking, keys) else scaled_dot_product_attention
    out = attend(asking, asked, answers, attn_mask=mask).transpose(1, 2)
    if empty is not None:
        out = out.masked_fill(empty.unsqueeze(-1), 0)
    return out.flatten(0, 1)


def _is_plain(asking: Tensor, keys: Tensor) -> bool:
    """Whether the formula is written out."""
    if torch.compiler.is_compiling():
        return is_exported()
    return is_transformed() or choice.backend == "reference" or asking.shape[:3].numel() * keys.shape[1] <= SMALL


def _plain_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None) -> Tensor:
    """The formula written out, with derivatives of any degree."""
    scores = (query * query.shape[-1] ** -0.5) @ key.transpose(-1, -2)
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, -torch.inf)
    return scores.softmax(-1) @ value


def _pick(rows: Tensor, index: Tensor, is_padded: bool) -> Tensor:
    """Rows of a tile; padding is zero, whatever the row that stands in for it holds."""
    if is_exported():
        rows = with_one_more(rows)
    picked = rows.index_select(0, index.clamp(min=0).flatten()).unflatten(0, index.shape)
    if is_padded:
        picked = picked.masked_fill((index < 0)[..., None, None], 0)
    return picked.transpose(1, 2)
