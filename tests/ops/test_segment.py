"""Every version of segment linear attention against the reference, forward and backward."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint

from anyorder.layouts import Queries, Segments
from anyorder.ops.backends import use_backend
from anyorder.ops.features import FeatureMap, Problem
from anyorder.ops.segment import choose, segment_attention
from segments import assert_equals_reference, outputs, problem

BACKENDS = ["numba", "products"]


@pytest.fixture
def nan_for_what_is_not_written():
    torch.use_deterministic_algorithms(True)  # new memory is filled with NaN then
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize(
    ("kind", "dtype", "tolerance"),
    [("relu", torch.float64, 1e-10), *[(kind, torch.float32, 1e-5) for kind in ("none", "relu", "elu")]],
)
@pytest.mark.parametrize("hub", [False, True])
def test_equals_the_reference(backend, normalize, kind, dtype, tolerance, hub, monkeypatch):
    if hub and backend == "numba":
        monkeypatch.setattr("anyorder.ops.segment_cpu.PIECE", 16)  # so that groups are cut
    assert_equals_reference(backend, normalize, problem(kind, dtype, hub=hub), tolerance)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize(("kind", "dtype", "tolerance"), [("relu", torch.float64, 1e-10), ("elu", torch.float32, 1e-5)])
def test_single_queries_go_through_many_keys_in_turns(normalize, kind, dtype, tolerance, nan_for_what_is_not_written):
    torch.manual_seed(0)
    group = torch.repeat_interleave(torch.arange(4), torch.tensor([0, 16, 17, 100]))[torch.randperm(133)]
    keys, queries = Segments.build(group, 4), Queries(torch.arange(4), torch.arange(5)[None])
    tensors, _, _, features = problem(kind, dtype, keys=133, queries=4, groups=4, classes=1)
    assert_equals_reference("numba", normalize, (tensors, keys, queries, features), tolerance)


@pytest.mark.parametrize("backend", ["reference", *BACKENDS])
def test_gradcheck_and_opcheck(backend):
    tensors, keys, queries, features = problem("relu", torch.float64, keys=12, queries=9, groups=4, heads=2)
    leaves = [part.contiguous().requires_grad_() for part in tensors.values()]
    with use_backend(backend):
        for normalize in (True, False):

            def call(*parts, normalize=normalize):
                out = segment_attention(*parts, keys, queries, features, normalize)  # type: ignore[call-arg]
                return out[0] if normalize else out

            assert torch.autograd.gradcheck(call, leaves, fast_mode=True)
        indices = (keys.rows, keys.pointer, queries.rows, queries.pointer)
        arguments = (*leaves, features.directions, *indices, "relu", 1e-3, True)
        torch.library.opcheck(torch.ops.anyorder.segment_attention.default, arguments)


@pytest.mark.parametrize("backend", ["reference", *BACKENDS])
@pytest.mark.parametrize("normalize", [True, False])
def test_opcheck_of_the_gradient(backend, normalize):
    tensors, keys, queries, features = problem("relu", torch.float64, keys=12, queries=9, groups=4, heads=2)
    index = (features.directions, keys.rows, keys.pointer, queries.rows, queries.pointer, "relu", 1e-3, normalize)
    with use_backend(backend):
        made = torch.ops.anyorder.segment_attention(*tensors.values(), *index)
        grads = [torch.randn_like(part) for part in made]
        arguments = (*tensors.values(), *index, *made, *grads)
        torch.library.opcheck(torch.ops.anyorder.segment_attention_backward.default, arguments)


@pytest.mark.parametrize("backend", ["reference", *BACKENDS])
def test_a_query_without_keys_has_no_gradient_however_large_the_loss(backend):
    tensors, _, _, features = problem("relu", torch.float32, keys=3, queries=2, groups=2, classes=1, heads=1)
    keys = Segments.build(torch.tensor([0, 0, -1]), 2)
    asked = Segments.build(torch.tensor([1, 0]), 2)  # the first query reads the empty group
    leaves = [part.detach().requires_grad_() for part in tensors.values()]
    with use_backend(backend):
        sums, _ = segment_attention(*leaves, keys, Queries(asked.rows, asked.pointer[None]), features, True)  # type: ignore[call-arg]
        (sums * 1e6).sum().backward()
    assert sums[0].eq(0).all() and leaves[0].grad[0].eq(0).all()
    assert all(leaf.grad.isfinite().all() for leaf in leaves)


@pytest.mark.parametrize("backend", BACKENDS)
def test_threads_do_not_change_a_bit(backend, monkeypatch):
    monkeypatch.setattr("anyorder.ops.segment_cpu.PIECE", 16)
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
    exact = segment_attention(*tensors.values(), keys, queries, features, True)[0]  # type: ignore[call-arg]
    half = segment_attention(*[part.bfloat16() for part in tensors.values()], keys, queries, features, True)[0]  # type: ignore[call-arg]
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.float(), exact, rtol=0.1, atol=0.1)


def test_unknown_backend_is_refused():
    with pytest.raises(ValueError, match="backend must be one of"), use_backend("cuda"):
        pass


def call(tensors, keys, queries, features):
    return segment_attention(*tensors, keys, queries, features, True)[0]  # type: ignore[call-arg]


@pytest.mark.filterwarnings("ignore")  # torch.jit is to be left
def test_who_looks_at_operators_finds_one():
    """Called as functions, loops would be constants to a tracer; they carry no tangents."""
    tensors, *known = problem("relu", torch.float32)
    given = tuple(part.contiguous() for part in tensors.values())
    with use_backend("numba"), torch.no_grad():
        traced = torch.jit.trace(lambda *given: call(given, *known), given, check_trace=False)
        others = tuple(part + 1 for part in given)
        torch.testing.assert_close(traced(*others), call(others, *known))
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
            call(given, *known)
        assert "anyorder::segment_attention" in {event.key for event in seen.key_averages()}
    with use_backend("numba"), forward_ad.dual_level():
        dual = call((forward_ad.make_dual(given[0], torch.ones_like(given[0])), *given[1:]), *known)
        tangent = forward_ad.unpack_dual(dual).tangent
    expected = torch.func.jvp(lambda query: call((query, *given[1:]), *known), given[:1], (torch.ones_like(given[0]),))[1]
    torch.testing.assert_close(tangent, expected)


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints_of_torch_recompute_it(reentrant):
    tensors, *known = problem("relu", torch.float64, keys=30, queries=20, groups=4)
    grads = []
    with use_backend("numba"):
        for kept in (True, False):
            leaves = [part.detach().clone().requires_grad_() for part in tensors.values()]
            run = (lambda *given: call(given, *known)) if kept else recomputed(known, reentrant)
            run(*leaves).square().sum().backward()
            grads.append([leaf.grad for leaf in leaves])
    assert all(torch.equal(a, b) for a, b in zip(*grads))


def recomputed(known, reentrant):
    return lambda *given: checkpoint(lambda *again: call(again, *known), *given, use_reentrant=reentrant)


@pytest.mark.parametrize("ready", [True, False])
@pytest.mark.parametrize(("groups", "few"), [(1, False), (3, False), (20, True), (100, True)])
def test_wide_heads_take_products_unless_groups_have_few_keys(groups, few, ready, monkeypatch):
    """100 keys, 100 queries for each: 100, 33, 5 or 1 of them in a group. Products serve while loops are compiled."""
    monkeypatch.setattr("anyorder.ops.segment_cpu.ready", lambda *given: ready)
    keys = Segments.build(torch.arange(100) % groups, groups)
    queries = Queries.build([Segments.build(torch.arange(10_000) % groups, groups)])
    wide, many = torch.ones(100, 1, 2, 64), torch.ones(10_000, 1, 2, 64)
    with use_backend("auto"):
        found = choose(Problem(many, wide, torch.ones(100, 1, 2, 136), keys, queries, FeatureMap("none"), True))
    assert found == ("numba" if few and ready else "products")


@pytest.mark.parametrize("ready", [True, False])
def test_heads_that_are_less_wide_take_loops_once_these_are_there(ready, monkeypatch):
    monkeypatch.setattr("anyorder.ops.segment_cpu.ready", lambda *given: ready)
    keys = Segments.build(torch.zeros(10_000, dtype=torch.int64), 1)
    rows = torch.ones(10_000, 1, 2, 32)
    with use_backend("auto"):
        found = choose(Problem(rows, rows, rows, keys, Queries.build([keys]), FeatureMap("none"), True))
    assert found == ("numba" if ready else "products")
