"""Attention whose weights are products of several small products, pair by pair: for groups of few keys."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from anyorder.layouts import Tiling
from anyorder.ops.over_tiles import over_tiles
from anyorder.ops.segment import divided, in_full


def factored_tiles(tiling: Tiling, query: Tensor, key: Tensor, value: Tensor, *, factors: int, normalize: bool) -> Tensor:
    r"""Attention over exactly the keys of a class, for (row, head, channel).

    .. math:: N_j = \sum_{i | (i,j) \in \mu} \prod_f (q_j^f . k_i^f) v_i

    Queries and keys hold the features of one factor after the other. Nothing is taken off a larger sum, so that their own
    type does.
    """
    return over_tiles(tiling, partial(_attend, factors, normalize), query, key, value)


def _attend(factors: int, normalize: bool, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    with in_full(query):
        first, *others = zip(query.chunk(factors, -1), key.chunk(factors, -1), strict=True)
        weights = first[0] @ first[1].transpose(-1, -2)
        for asking, asked in others:
            weights = weights * (asking @ asked.transpose(-1, -2))
        if mask is not None:
            weights = weights.masked_fill(~mask, 0)
        sums = weights @ value
        return divided(sums, weights.sum(-1, keepdim=True)) if normalize else sums
