"""The settings of lean layers reach every attention of a recipe's model."""

from __future__ import annotations

import numpy as np
import pytest

from anyorder import EncoderLayer, EquivariantAttention
from anyorder.experiments.chains.models import ChainShapes, GraphEncoder
from anyorder.experiments.hyperedges.batches import Known
from anyorder.experiments.hyperedges.models import TupleEncoder
from anyorder.experiments.molecules.models import MoleculeEncoder
from anyorder.experiments.set_to_graph.models import SetEncoder
from anyorder.experiments.set_to_graph.sets import SetShapes

TRIPLES = np.array([[0, 2, 4], [1, 3, 5], [0, 3, 4]])
BUILD = {
    "chains": lambda **lean: GraphEncoder(**lean).build(ChainShapes(3, 2)),
    "molecules": lambda **lean: MoleculeEncoder(layers=2, channels=16, **lean).network(1),
    "sets to graphs": lambda **lean: SetEncoder(layers=1, channels=16, **lean).build(SetShapes(2)),
    "hyperedges": lambda **lean: TupleEncoder(**lean).build(Known((2, 2, 2), ("a", "b", "c"), TRIPLES, np.ones(3))),
}


def attentions(model):
    found = [module for module in model.modules() if isinstance(module, EquivariantAttention)]
    return [module for module in found if module.order_out]  # a single class: nothing is shared with others


@pytest.mark.parametrize("name", BUILD)
def test_reach_the_layers(name):
    lean = attentions(BUILD[name](sharing="keys and queries", output_rank=3))
    assert lean
    assert {layer.sharing for layer in lean} == {"keys and queries"}
    assert {layer.output_rank for layer in lean} == {3}
    assert {layer.sharing for layer in attentions(BUILD[name]())} == {"none"}


@pytest.mark.parametrize("name", ["chains", "molecules", "sets to graphs"])
def test_an_mlp_in_place_reaches_the_layers(name):
    lean, full = (
        [module for module in BUILD[name](**given).modules() if isinstance(module, EncoderLayer)]
        for given in ({"mlp_classes": "pointwise, in place"}, {})
    )
    inner = [(a, b) for a, b in zip(lean, full, strict=True) if a.order_out == 2]
    assert inner and all(len(a.widen.classes) == 2 and len(b.widen.classes) == 5 for a, b in inner)
