"""The attention coefficients of one equivalence class, written out: for looking at small inputs."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from anyorder.algebra import EquivalenceClass, SetPartition
from anyorder.algebra.program import Project, module_name
from anyorder.layers import EquivariantAttention, Softmax
from anyorder.layers.kernels import FeatureKernel
from anyorder.layers.projection import PointwiseProjection
from anyorder.layouts import Entries, Features, IndexSet, Plan
from anyorder.ops.gather import project

MOST_PAIRS = 1 << 26


def attention_map(
    attention: EquivariantAttention, x: Features, cls: EquivalenceClass, target: IndexSet | None = None
) -> Tensor:
    r"""(head, query, key): how much of each input entry of a class its output entries receive.

    .. math:: \alpha_{ij} = \exp(q_j \cdot k_i / \sqrt d) / Z_j \quad\text{or}\quad \phi(q_j) \cdot \phi(k_i) / Z_j

    Queries and keys are the entries of the target and of the source pattern of the class, in their order. Rows of queries
    without keys are zero.
    """
    if cls.kind == "pointwise":
        raise ValueError(f"the class {cls.name} is pointwise: it reads one entry and has no attention to show")
    target = x.target(attention.order_out, target)
    plan = x.index.plan(target)
    queries, keys = target.entries(cls.target), x.index.entries(cls.source)
    if len(queries) * len(keys) > MOST_PAIRS:
        raise ValueError(f"{len(queries)} x {len(keys)} coefficients are too many to write out, at most {MOST_PAIRS}")
    weights = attention.weights_of(cls)
    asking, asked = attention.query[module_name(cls.target)], attention.key[module_name(cls.source)]
    query = _lightweight(plan, _step(asking, cls.target), x, weights.get("query"), weights["query_bias"])
    key = _lightweight(x.index.plan(x.index), _step(asked, cls.source), x, weights["key"], weights["key_bias"])
    kernel = attention.kernels[cls.kind == "global"]
    related = _related(cls, queries, keys, exact=attention.coupling == "exact")
    if isinstance(kernel, Softmax):
        scores = torch.einsum("qhc,khc->hqk", query, key) / query.shape[-1] ** 0.5
        return scores.masked_fill(~related, -torch.inf).softmax(-1).nan_to_num(0.0)
    assert isinstance(kernel, FeatureKernel)
    rows, phi = (query.unsqueeze(1), key.unsqueeze(1)), attention.feature_maps()[cls.kind == "global"]
    query, key, features = kernel.transform(plan.grouped((cls,)), *rows, phi, attention.normalize)
    scores = torch.einsum("qhm,khm->hqk", features(query)[:, 0], features(key)[:, 0]) * related
    if not attention.normalize:
        return scores
    return scores / scores.sum(-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).tiny)


def _step(projection: nn.Module, pattern: SetPartition) -> Project:
    assert isinstance(projection, PointwiseProjection)
    return Project("target", pattern, projection.classes, ())


def _lightweight(plan: Plan, step: Project, x: Features, weight: Tensor | None, bias: Tensor) -> Tensor:
    """(entry, head, channel): queries or keys at the entries of a pattern."""
    reads, flat = [plan.gather(cls) for cls in step.classes], None if weight is None else weight.flatten(2)
    rows = project(step, (len(plan.target.entries(step.pattern)), reads), x.index.split(x.rows), flat, bias.flatten())
    return rows.unflatten(1, bias.shape)


def _related(cls: EquivalenceClass, queries: Entries, keys: Entries, *, exact: bool) -> Tensor:
    """(query, key): which pairs a class joins; without ``exact`` its equalities alone count."""
    related = queries.graph[:, None] == keys.graph[None, :]
    equal = {
        (a, b): keys.tuples[None, :, a] == queries.tuples[:, None, b]
        for a in range(keys.tuples.shape[1])
        for b in range(queries.tuples.shape[1])
    }
    for blocks, same in equal.items():
        if blocks in cls.matching:
            related = related & same
        elif exact:
            related = related & ~same
    return related
