"""Loops that are compiled in the background take over at any time, and change nothing but rounding."""

from __future__ import annotations

from threading import Barrier, Thread

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from anyorder import Elu, EncoderLayer, Features
from anyorder.layouts import Spread
from anyorder.ops import dropout, gather, segment, segment_cpu
from anyorder.ops.backends import choice, here, plain_in_this_thread, use_backend, use_compiling
from anyorder.ops.dropout import Dropout
from anyorder.testing import random_features


class Loops:
    """Loops of Numba that are there from a moment on."""

    def __init__(self, real) -> None:
        self.real, self.there = real, False

    def has(self, *key):
        return self.there

    def get(self, *key, need: bool = False):
        return self.real.get(*key, need=True) if self.there else None


@pytest.fixture
def loops(monkeypatch):
    """All that is compiled, as if for large inputs; nothing is there at first."""
    made = [Loops(module.compiled) for module in (segment_cpu, gather)]
    for module, each in zip((segment_cpu, gather), made, strict=True):
        monkeypatch.setattr(module, "compiled", each)
    monkeypatch.setattr(gather, "FEW", 0)
    monkeypatch.setattr(segment, "SMALL", -1)

    def arrive(there: bool = True) -> None:
        for each in made:
            each.there = there

    with use_backend("auto"), use_compiling("background"):
        yield arrive


def _layer(**options):
    torch.manual_seed(0)
    sizes = {"order_in": 2, "order_out": 2, "channels": 4, "heads": 2, "head_channels": 2}
    layer = EncoderLayer(**sizes, kernel=Elu(), dropout=0.5, **options).double()
    generator = torch.Generator().manual_seed(1)
    return layer, random_features(2, channels=4, num_nodes=5, num_graphs=2, density=0.6, generator=generator)


@pytest.mark.parametrize("how", ["as it is", "recompute", "checkpoint"])
def test_a_layer_is_recomputed_as_it_was_though_loops_came_meanwhile(loops, how):
    layer, x = _layer(recompute=how == "recompute")
    grads = []
    for comes in (False, True):
        loops(False)
        torch.manual_seed(5)
        rows = x.rows.clone().requires_grad_()

        def run(rows):
            return layer(x.with_rows(rows)).rows

        made = checkpoint(run, rows, use_reentrant=False) if how == "checkpoint" else run(rows)
        loops(comes)
        made.square().sum().backward()
        grads.append(rows.grad)
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dropout_draws_the_same_with_and_without_loops(loops, dtype):
    x = torch.randn(700, 5, dtype=dtype)
    seed = torch.tensor(2**61 + 12345)
    plain = dropout._dropout(x, seed, 0.3)
    loops()
    assert torch.equal(dropout._dropout(x, seed, 0.3), plain)
    assert 0.25 < float((plain == 0).double().mean()) < 0.35


def test_dropout_in_blocks_draws_the_same(monkeypatch):
    x = torch.randn(50, 3)
    whole = dropout._drop_plainly(x, 7, 0.5)
    monkeypatch.setattr(dropout, "BLOCK", 12)
    assert torch.equal(dropout._drop_plainly(x, 7, 0.5), whole)


def test_gathers_give_the_same_with_and_without_loops(loops):
    tables = [torch.randn(n, 3, dtype=torch.float64) for n in (4, 6)]
    swap = [Spread.build(torch.randperm(6)[:4], 6, one_to_one=True), Spread.build(torch.tensor([2, -1, 0, 1]), 4)]
    found = []
    for there in (False, True):
        loops(there)
        leaves = [table.clone().requires_grad_() for table in tables]
        added = gather.add_spread(leaves[0], [(leaves[1], swap[0]), (leaves[0], swap[1])])
        side = gather.beside(
            [(leaves[0], Spread.build(torch.tensor([1, 0, 3, 2]), 4, one_to_one=True)), (leaves[0], swap[1])]
        )
        (added.square().sum() + side.pow(3).sum()).backward()
        found.append([added, side, *(leaf.grad for leaf in leaves)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("there", [False, True])
def test_batches_of_gradients(loops, there):
    loops(there)
    torch.manual_seed(0)
    x = torch.randn(40, 3, requires_grad=True)
    made = Dropout(0.5)(x)
    vectors = torch.randn(3, 40, 3)
    batched = torch.autograd.grad(made, x, vectors, is_grads_batched=True, retain_graph=True)[0]
    alone = torch.stack([torch.autograd.grad(made, x, vector, retain_graph=True)[0] for vector in vectors])
    torch.testing.assert_close(batched, alone)


@pytest.mark.parametrize("there", [False, True])
def test_batches_of_gradients_of_a_layer(loops, there):
    loops(there)
    layer, x = _layer()
    layer.eval()
    rows = x.rows.clone().requires_grad_()
    made = layer(x.with_rows(rows)).rows
    vectors = torch.randn(2, *made.shape, dtype=torch.float64)
    batched = torch.autograd.grad(made, rows, vectors, is_grads_batched=True, retain_graph=True)[0]
    alone = torch.stack([torch.autograd.grad(made, rows, vector, retain_graph=True)[0] for vector in vectors])
    torch.testing.assert_close(batched, alone)


def test_threads_do_not_leave_the_reference_behind():
    barrier = Barrier(2)
    seen = []

    def work() -> None:
        for _ in range(20):
            barrier.wait()
            with plain_in_this_thread():
                seen.append(here.plain)
                barrier.wait()

    with use_backend("auto"):
        threads = [Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert choice.backend == "auto"
    assert all(seen)
    assert not getattr(here, "plain", False)


def test_features_are_those_of_the_reference(loops):
    layer, x = _layer()
    layer.eval()
    with use_backend("reference"):
        right = layer(Features(x.index, x.values)).rows
    for there in (False, True):
        loops(there)
        torch.testing.assert_close(layer(x).rows, right)
