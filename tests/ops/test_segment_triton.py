"""Segment linear attention by Triton against the reference: on a GPU, or else through Triton's interpreter.

The interpreter is chosen when Triton is imported, so these tests run in a process of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec

import pytest
import torch

from anyorder.layouts import Queries, Segments
from anyorder.ops.backends import use_backend
from anyorder.ops.segment import segment_attention
from segments import assert_equals_reference, outputs, problem

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")
inside = pytest.mark.skipif(DEVICE == "cpu" and not INTERPRETED, reason="runs in the interpreter's own process")
SMALL = {"keys": 34, "queries": 24, "groups": 6, "heads": 2}
FLOATS = [pytest.param(torch.float64, 1e-10, id="float64"), pytest.param(torch.float32, 1e-5, id="float32")]


@pytest.mark.skipif(INTERPRETED or DEVICE == "cuda", reason="runs the others in the interpreter")
@pytest.mark.parametrize("chosen", ["not slow", pytest.param("slow", marks=pytest.mark.slow)])
def test_in_the_interpreter(chosen):
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-m", chosen, __file__]
    done = subprocess.run(command, env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


@pytest.fixture
def cut(monkeypatch):
    """Short pieces, so that the hub is cut into several."""
    monkeypatch.setattr("anyorder.ops.segment_triton.PIECE", 16)


def given(kind, dtype, **sizes):
    """A problem on the device."""
    tensors, keys, queries, features = problem(kind, dtype, **{**SMALL, **sizes})
    directions = None if features.directions is None else features.directions.to(DEVICE)
    return (
        {name: part.to(DEVICE) for name, part in tensors.items()},
        Segments(keys.rows.to(DEVICE), keys.pointer.to(DEVICE)),
        Queries(queries.rows.to(DEVICE), queries.pointer.to(DEVICE)),
        replace(features, directions=directions),
    )


@inside
@pytest.mark.parametrize(("kind", "normalize"), [("relu", True), ("elu", False)])
def test_equals_the_reference(kind, normalize):
    assert_equals_reference("triton", normalize, given(kind, torch.float64), 1e-10)


@inside
def test_a_hub_is_cut(cut):
    assert_equals_reference("triton", True, given("relu", torch.float32, hub=True, classes=1), 1e-5)


@inside
def test_a_query_without_keys_has_no_gradient_however_large_the_loss():
    tensors, _, _, features = given("relu", torch.float32, keys=3, queries=2, groups=2, classes=1, heads=1)
    keys = Segments.build(torch.tensor([0, 0, -1], device=DEVICE), 2)
    asked = Segments.build(torch.tensor([1, 0], device=DEVICE), 2)  # the first query reads the empty group
    leaves = [part.detach().requires_grad_() for part in tensors.values()]
    with use_backend("triton"):
        sums, _ = segment_attention(*leaves, keys, Queries(asked.rows, asked.pointer[None]), features, True)  # type: ignore[call-arg]
        (sums * 1e6).sum().backward()
    assert sums[0].eq(0).all() and leaves[0].grad[0].eq(0).all()
    assert all(leaf.grad.isfinite().all() for leaf in leaves)


@inside
@pytest.mark.parametrize(("keys", "queries"), [(0, 5), (5, 0), (0, 0)])
def test_nothing_in_nothing_out(keys, queries):
    for part in outputs("triton", True, *given("relu", torch.float32, keys=keys, queries=queries, groups=2, classes=1)):
        assert part.isfinite().all()


@inside
@pytest.mark.slow
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("kind", ["none", "relu", "elu"])
@pytest.mark.parametrize(("dtype", "tolerance"), FLOATS)
@pytest.mark.parametrize("hub", [False, True])
def test_every_kind_and_type_equals_the_reference(normalize, kind, dtype, tolerance, hub, cut):
    assert_equals_reference("triton", normalize, given(kind, dtype, hub=hub, seed=1), tolerance)


@inside
@pytest.mark.slow
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("kind", ["relu", "elu"])
@pytest.mark.parametrize("hub", [False, True])
def test_wide_heads_take_several_turns(kind, normalize, hub, cut):
    wide = given(kind, torch.float64, width=37, width_value=34, features=35, groups=6, classes=1, heads=1, hub=hub)
    assert_equals_reference("triton", normalize, wide, 1e-10)


@inside
@pytest.mark.slow
def test_gradcheck():
    tensors, keys, queries, features = given("relu", torch.float64, keys=6, queries=4, groups=2, classes=1, heads=1, width=3)
    leaves = [part.contiguous().requires_grad_() for part in tensors.values()]
    with use_backend("triton"):
        assert torch.autograd.gradcheck(lambda *parts: segment_attention(*parts, keys, queries, features, True)[0], leaves)  # type: ignore[call-arg]
