"""Index sets, plans and batches are freed when nobody needs them, without Python's collector of cycles."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest
import torch

from anyorder import (
    CompleteIndexSet,
    Encoder,
    EquivariantAttention,
    EquivariantLinear,
    Features,
    RandomFeatures,
    Softmax,
    SymmetricEncoder,
    SymmetricIndexSet,
)
from anyorder.experiments.set_to_graph.models import PairEncoder
from anyorder.experiments.set_to_graph.sets import SetSample, collate_sets
from anyorder.layouts.incidence import IncidenceSet
from anyorder.models.hypergraph import HypergraphEncoder
from anyorder.testing import random_features, random_index_set

HEADS = {"channels": 4, "heads": 2, "head_channels": 2}
LAYOUTS = ("sparse", "dense", "complete")
SIZES = {"channels_in": 4, "channels": 4, "channels_out": 2, "heads": 2, "head_channels": 2}


@pytest.fixture(autouse=True)
def without_collector():
    gc.disable()
    yield
    gc.enable()


def held(index) -> list[str]:
    """Who still holds an index set."""
    there = index()
    return [] if there is None else [type(each).__name__ for each in gc.get_referrers(there)] or ["somebody"]


@pytest.mark.parametrize("kernel", [Softmax(), RandomFeatures()], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_after_a_step_of_a_model(layout, kernel):
    x = random_features(order=2, channels=4, layout=layout, dtype=torch.float32)
    model = Encoder(order_in=2, orders=(2, 1, 0), **SIZES, kernel=kernel)
    model.prepare(x.index)
    model(x).rows.sum().backward()
    index = weakref.ref(x.index)
    del x
    assert held(index) == []


@pytest.mark.parametrize("layer", [EquivariantLinear, EquivariantAttention])
def test_after_a_target_of_its_own(layer):
    x = random_features(order=1, channels=4, dtype=torch.float32)
    target = random_index_set(2, like=x.index)
    widths = {"channels_in": 4, "channels_out": 4} if layer is EquivariantLinear else HEADS
    made = layer(order_in=1, order_out=2, **widths)
    made.prepare(x.index, target)
    made(x, target).rows.sum().backward()
    both = weakref.ref(x.index), weakref.ref(target)
    del x, target
    assert [held(index) for index in both] == [[], []]


def test_after_recomputing():
    x = random_features(order=2, channels=4, dtype=torch.float32)
    sizes = {"order_in": 2, "order_out": 2, "channels": 4, "heads": 2, "head_channels": 2}
    loss = EquivariantAttention(**sizes, kernel=RandomFeatures(), recompute=True)(x).rows.sum()
    index = weakref.ref(x.index)
    del x
    loss.backward()  # what is needed was held until now
    del loss
    assert held(index) == []


@pytest.mark.parametrize("move", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)), lambda x: x.to(torch.float32)])
def test_after_a_copy(move):
    x = random_features(order=2, channels=4)
    layer = EquivariantAttention(order_in=2, order_out=1, channels=4, heads=2, head_channels=2)
    layer.prepare(x.index)
    there = move(x)
    indices = weakref.ref(x.index), weakref.ref(there.index)
    del x
    layer.to(there.dtype)(there).rows.sum().backward()  # its plan has an index set of its own
    del there
    assert [held(index) for index in indices] == [[], []]


def test_a_plan_that_is_moved_alone_takes_its_index_set_along():
    index = random_index_set(2)
    plan = index.plan(index).to("cpu")
    assert plan.source is plan.target and plan.source is not index


def test_a_plan_whose_index_set_is_gone_says_so():
    index = random_index_set(2)
    plan = index.plan(index)
    del index
    with pytest.raises(ReferenceError, match="keep a reference"):
        plan.source  # noqa: B018


@pytest.mark.parametrize("kernel", [Softmax(), RandomFeatures()], ids=str)
def test_after_a_prediction_for_sets(kernel, monkeypatch):
    made, build = [], CompleteIndexSet.__init__
    monkeypatch.setattr(
        CompleteIndexSet, "__init__", lambda self, *given: build(self, *given) or made.append(weakref.ref(self))
    )
    batch = collate_sets([SetSample(np.random.default_rng(n).normal(size=(n + 2, 2)).astype(np.float32)) for n in range(4)])
    model = PairEncoder(Encoder(order_in=1, orders=(1, 2), **SIZES | {"channels_in": 2}, kernel=kernel), head=(4,))
    with torch.inference_mode():
        model(batch)
    del batch
    assert made and all(held(index) == [] for index in made)


def test_after_a_model_of_hyperedges_without_an_order():
    index = SymmetricIndexSet(torch.tensor([[0, 1, 2], [1, 2, 3]]), num_nodes=4)
    x = Features(index, torch.randn(2, 4))
    SymmetricEncoder(order_in=3, orders=(3, 1), **SIZES)(x).rows.sum().backward()
    there = weakref.ref(index)
    del x, index
    assert held(there) == []


def test_after_a_model_of_hypergraphs():
    incidence = IncidenceSet.build(torch.tensor([0, 1, 1, 2]), torch.tensor([0, 0, 1, 1]), num_nodes=3, num_edges=2)
    HypergraphEncoder(**SIZES, layers=1)(torch.randn(3, 4), incidence).sum().backward()
    there = weakref.ref(incidence)
    del incidence
    assert held(there) == []
