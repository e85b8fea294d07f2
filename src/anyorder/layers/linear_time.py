"""Kernel attention in linear time, with relaxed or exact coupling of queries and keys (Sec. 4.3)."""

from __future__ import annotations

import torch
from torch import Tensor

from anyorder.algebra import EquivalenceClass, expansion
from anyorder.layers.kernels import FeatureMap
from anyorder.layouts import Plan
from anyorder.ops.segment import segment_attention


def kernel_relaxed(
    plan: Plan,
    classes: tuple[EquivalenceClass, ...],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    features: FeatureMap,
    normalize: bool,
) -> Tensor:
    """Attention with the equalities of each class and without its inequalities (Eq. 16); the classes share their groups."""
    query, key, features = stabilise(plan, classes[0], query, key, features, normalize)
    return segment_attention(query, key, value, plan.keys(classes[0]), plan.asked(classes), features, normalize)[0]


def kernel_exact(
    plan: Plan,
    classes: tuple[EquivalenceClass, ...],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    features: FeatureMap,
    normalize: bool,
) -> Tensor:
    """Attention over exactly {i : (i, j) in mu}, as an alternating sum of relaxed sums.

    Sums are in double precision: where few keys of a large group are allowed, they are a small difference of large numbers.
    """
    kind = value.dtype
    query, key, value, features = query.double(), key.double(), value.double(), features.double()
    query, key, features = stabilise(plan, classes[0], query, key, features, normalize)
    parts = []
    for cls, q, k, v in zip(classes, *(x.split(1, 1) for x in (query, key, value)), strict=True):
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        sums = norms = query.new_zeros(())
        for sign, term in expansion(cls):
            more = segment_attention(q, k, v, plan.keys(term), plan.asked((term,)), features, normalize=False)
            sums, norms = torch.add(sums, more[0], alpha=sign), torch.add(norms, more[1], alpha=sign)
        empty = plan.members(cls, "exact") == 0
        result = _divide(sums, norms) if normalize else sums
        parts.append(result.masked_fill(empty.view(-1, 1, 1, 1), 0))
    return torch.cat(parts, 1).to(kind)


def _divide(sums: Tensor, norms: Tensor) -> Tensor:
    """A query without keys has sum 0 and norm 0, and receives 0."""
    return sums / norms.clamp(min=torch.finfo(norms.dtype).tiny).unsqueeze(-1)


def stabilise(
    plan: Plan, cls: EquivalenceClass, query: Tensor, key: Tensor, features: FeatureMap, normalize: bool
) -> tuple[Tensor, Tensor, FeatureMap]:
    """For the softmax map, apply it with exponents shifted by their maximum, which cancels where attention is normalised.

    The maximum is taken per query, and per graph for keys, so that no graph sees another.
    """
    if features.kind != "exp":
        return query, key, features
    shift_query: Tensor | float = 0.0
    shift_key: Tensor | float = 0.0
    if normalize and len(key):
        graph = plan.source.entries(cls.source).graph
        highest = features.exponent(key.detach())
        most = highest.new_full((plan.source.num_graphs, *highest.shape[1:]), -torch.inf)
        index = graph.view(-1, *[1] * (highest.ndim - 1)).expand_as(highest)
        shift_key = most.scatter_reduce(0, index, highest, "amax").index_select(0, graph)
        shift_query = features.exponent(query.detach())
    return features(query, shift_query), features(key, shift_key), FeatureMap("none", None, 0.0)
