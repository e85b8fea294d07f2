"""Every version of segment linear attention against the reference, forward and backward."""

from __future__ import annotations

import pytest
import torch

from anyorder.layers.kernels import FeatureMap
from anyorder.layers.segment import segment_attention, use_backend
from anyorder.layouts import Queries, Segments

BACKENDS = ["numba"]


def problem(kind, dtype, *, keys=300, queries=260, groups=17, classes=2, heads=3, width=5, width_value=4, hub=False, seed=0):
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
    starts = torch.tensor([0] + [len(part.order) for part in asked]).cumsum(0)
    pointer = torch.stack([part.pointer + start for part, start in zip(asked, starts)])
    wide = torch.randn(keys, 2 * classes, heads, width, **draw).to(dtype)
    tensors = {
        "query": torch.randn(queries, classes, heads, width, **draw).to(dtype),
        "key": wide[:, classes:],  # rows with gaps between them, as slices of a wide projection have
        "value": torch.randn(keys, classes, heads, width_value, **draw).to(dtype),
    }
    directions = torch.randn(7, width, **draw).to(dtype) if kind == "relu" else None
    if kind == "none":
        tensors["query"], tensors["key"] = tensors["query"].abs() + 0.1, tensors["key"].abs() + 0.1
    features = FeatureMap(kind, directions, 1e-3 if kind == "relu" else 0.0)
    return tensors, Segments.build(group, groups), Queries(torch.cat([part.order for part in asked]), pointer), features


def outputs(backend, normalize, tensors, keys, queries, features):
    leaves = [part.detach().requires_grad_() for part in tensors.values()]
    with use_backend(backend):
        sums, norms = segment_attention(*leaves, keys, queries, features, normalize)
        weights = torch.randn(sums.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(sums.dtype)
        loss = (sums * weights).sum() + (0 if normalize else norms.sum())
        return sums.detach(), norms.detach(), *torch.autograd.grad(loss, leaves)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("kind", ["none", "relu", "elu"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@pytest.mark.parametrize("hub", [False, True])
def test_equals_the_reference(backend, normalize, kind, dtype, tolerance, hub, monkeypatch):
    if hub and backend == "numba":
        monkeypatch.setattr("anyorder.layers.segment_cpu.PIECE", 16)  # so that groups are cut
    given = problem(kind, dtype, hub=hub)
    double = ({name: part.double() for name, part in given[0].items()}, *given[1:3], given[3].double())
    expected = outputs("reference", normalize, *double)
    for got, right in zip(outputs(backend, normalize, *given), expected):
        scale = right.abs().max().clamp(min=1)
        torch.testing.assert_close(got.double() / scale, right / scale, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("backend", ["reference", *BACKENDS])
def test_gradcheck_and_opcheck(backend):
    tensors, keys, queries, features = problem("relu", torch.float64, keys=12, queries=9, groups=4, heads=2, width=3)
    leaves = [part.contiguous().requires_grad_() for part in tensors.values()]
    with use_backend(backend):
        for normalize in (True, False):

            def call(*parts, normalize=normalize):
                out = segment_attention(*parts, keys, queries, features, normalize)
                return out[0] if normalize else out

            assert torch.autograd.gradcheck(call, leaves)
        indices = (keys.order, keys.pointer, queries.order, queries.pointer)
        arguments = (*leaves, features.directions, *indices, "relu", 1e-3, True)
        torch.library.opcheck(torch.ops.anyorder.segment_attention.default, arguments)


@pytest.mark.parametrize("backend", BACKENDS)
def test_threads_do_not_change_a_bit(backend, monkeypatch):
    monkeypatch.setattr("anyorder.layers.segment_cpu.PIECE", 16)
    given = problem("relu", torch.float32, hub=True)
    threads = torch.get_num_threads()
    results = []
    try:
        for number in (1, 2):
            torch.set_num_threads(number)
            results.append(outputs(backend, True, *given))
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(a, b) for a, b in zip(*results))


@pytest.mark.parametrize("backend", ["reference", *BACKENDS])
@pytest.mark.parametrize(("keys", "queries"), [(0, 5), (5, 0), (0, 0)])
def test_nothing_in_nothing_out(backend, keys, queries):
    given = problem("relu", torch.float32, keys=keys, queries=queries)
    for part in outputs(backend, True, *given):
        assert part.isfinite().all()


def test_half_precision_inputs_keep_their_type():
    tensors, keys, queries, features = problem("relu", torch.float32)
    exact = segment_attention(*tensors.values(), keys, queries, features, True)[0]
    half = segment_attention(*[part.bfloat16() for part in tensors.values()], keys, queries, features, True)[0]
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.float(), exact, rtol=0.1, atol=0.1)


def test_unknown_backend_is_refused():
    with pytest.raises(ValueError, match="backend must be one of"), use_backend("cuda"):
        pass
