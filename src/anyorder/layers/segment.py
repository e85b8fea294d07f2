"""Segment linear attention: for each group, sum phi(K) V^T over its keys and apply its queries (Sec. 4.3)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from anyorder.layers.kernels import FeatureMap
from anyorder.layouts import Segments


def segment_attention(
    query: Tensor, key: Tensor, value: Tensor, keys: Segments, queries: Sequence[Segments], features: FeatureMap
) -> tuple[Tensor, Tensor]:
    r"""Sums over groups of keys, weighted by a product of features.

    .. math:: N_j = \phi(q_j)^T \sum_{i \in g(j)} \phi(k_i) v_i^T, \quad Z_j = \phi(q_j)^T \sum_{i \in g(j)} \phi(k_i)

    Args:
        query: (query, class, head, channel).
        key: (key, class, head, channel).
        value: (key, class, head, channel).
        keys: the keys of each group, the same for all classes.
        queries: the queries of each group, for each class; a query of no group gets zeros.
        features: phi, already applied where its kind is ``"none"``.

    Returns:
        The sums (query, class, head, channel) and their normalisers (query, class, head).
    """
    return reference(query, key, value, keys, queries, features)


def reference(
    query: Tensor, key: Tensor, value: Tensor, keys: Segments, queries: Sequence[Segments], features: FeatureMap
) -> tuple[Tensor, Tensor]:
    """The same with tensor operations, class by class: any device, any type."""
    sums, norms = [], []
    group_of_key = torch.repeat_interleave(torch.arange(keys.num_groups, device=key.device), keys.sizes)
    for c, asked in enumerate(queries):
        phi_key = features(key[:, c].index_select(0, keys.order))
        ones = torch.ones_like(value[:, c, :, :1])
        widened = torch.cat([value[:, c], ones], -1).index_select(0, keys.order)
        products = phi_key.unsqueeze(-1) * widened.unsqueeze(-2)
        states = products.new_zeros(keys.num_groups, *products.shape[1:]).index_add(0, group_of_key, products)
        group_of_query = torch.repeat_interleave(torch.arange(keys.num_groups, device=key.device), asked.sizes)
        phi_query = features(query[:, c].index_select(0, asked.order))
        read = torch.einsum("qhm,qhmc->qhc", phi_query, states.index_select(0, group_of_query))
        whole = read.new_zeros(len(query), *read.shape[1:]).index_copy(0, asked.order, read)
        sums.append(whole[..., :-1])
        norms.append(whole[..., -1])
    return torch.stack(sums, 1), torch.stack(norms, 1)
