"""Softmax attention over groups of keys, tile by tile or over a list of pairs."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from anyorder.layouts import EntryPairs, Tiling
from anyorder.layouts.memory import is_exported, is_transformed
from anyorder.ops.backends import choice
from anyorder.ops.gather import highest_of
from anyorder.ops.over_tiles import over_tiles

SMALL = 2**16
"""Pairs of queries and keys, for all heads, up to which the formula is written out; the fused version derives once only."""


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
    return over_tiles(tiling, _attend, query, key, value)


def _attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    attend = _plain_attention if _is_plain(query, key) else scaled_dot_product_attention
    return attend(query, key, value, attn_mask=mask)


def _is_plain(query: Tensor, key: Tensor) -> bool:
    """Whether the formula is written out."""
    if torch.compiler.is_compiling():
        return is_exported()
    if query.dtype == torch.bfloat16 and query.device.type == "cpu":
        return True  # products in half precision, where the fused version computes in singles: half of its time
    return is_transformed() or choice.backend == "reference" or query.shape[:3].numel() * key.shape[2] <= SMALL


def _plain_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None) -> Tensor:
    """The formula written out, with derivatives of any degree."""
    scores = (query * query.shape[-1] ** -0.5) @ key.transpose(-1, -2)
    if attn_mask is not None:
        # added up, which costs the backward pass nothing
        scores = scores + torch.zeros_like(attn_mask, dtype=scores.dtype).masked_fill(~attn_mask, -torch.inf)
    return scores.softmax(-1) @ value
