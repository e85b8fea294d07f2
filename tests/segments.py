"""Random problems of segment linear attention, and what a backend makes of them."""

from __future__ import annotations

import torch

from anyorder.layouts import Queries, Segments
from anyorder.ops.backends import use_backend
from anyorder.ops.features import FeatureMap
from anyorder.ops.segment import segment_attention


def problem(
    kind,
    dtype,
    *,
    keys=300,
    queries=260,
    groups=17,
    classes=2,
    heads=3,
    width=5,
    width_value=4,
    features=7,
    hub=False,
    seed=0,
):
    """Tensors, keys, queries and feature map, with an empty group and entries of no group; a hub has half of all entries."""
    generator = torch.Generator().manual_seed(seed)
    draw = {"generator": generator, "dtype": torch.float64}
    group = torch.randint(-1, groups, (keys,), generator=generator)
    if hub:
        group[: keys // 2] = 3
    group[group == 5] = 4  # an empty group
    asked = []
    for _ in range(classes):
        read = torch.randint(-1, groups, (queries,), generator=generator)
        if hub:
            read[::2] = 3
        asked.append(Segments.build(read, groups))
    wide = torch.randn(keys, 2 * classes, heads, width, **draw).to(dtype)
    tensors = {
        "query": torch.randn(queries, classes, heads, width, **draw).to(dtype),
        "key": wide[:, classes:],  # rows with gaps between them, as slices of a wide projection have
        "value": torch.randn(keys, classes, heads, width_value, **draw).to(dtype),
    }
    directions = torch.randn(features, width, **draw).to(dtype) if kind == "relu" else None
    if kind == "none":
        tensors["query"], tensors["key"] = tensors["query"].abs() + 0.1, tensors["key"].abs() + 0.1
    feature_map = FeatureMap(kind, directions, 1e-3 if kind == "relu" else 0.0)
    return tensors, Segments.build(group, groups), Queries.build(asked), feature_map


def outputs(backend, normalize, tensors, keys, queries, features):
    """Sums, norms and the gradients of query, key and value."""
    leaves = [part.detach().requires_grad_() for part in tensors.values()]
    with use_backend(backend):
        sums, norms = segment_attention(*leaves, keys, queries, features, normalize)  # type: ignore[call-arg]
        weights = torch.randn(sums.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        loss = (sums * weights.to(sums)).sum() + (0 if normalize else norms.sum())
        return sums.detach(), norms.detach(), *torch.autograd.grad(loss, leaves)


def assert_equals_reference(backend, normalize, given, tolerance):
    """Outputs and gradients equal those of the reference in double precision, relative to the largest."""
    double = ({name: part.double() for name, part in given[0].items()}, *given[1:3], given[3].double())
    expected = outputs("reference", normalize, *double)
    for got, right in zip(outputs(backend, normalize, *given), expected):
        scale = right.abs().max().clamp(min=1)
        torch.testing.assert_close(got.double() / scale, right / scale, rtol=tolerance, atol=tolerance)
