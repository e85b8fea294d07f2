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


@pytest.mark.parametrize("name", ["chains", "molecules", "sets to graphs"])
def test_attention_without_a_direct_part_and_a_narrow_mlp_reach_the_layers(name):
    model = BUILD[name](direct=False, channels_hidden=5)
    layers = [module for module in model.modules() if isinstance(module, EncoderLayer)]
    inner = [layer for layer in layers if layer.order_in == layer.order_out]
    assert inner and all(layer.widen.channels_out == 5 for layer in inner)
    assert all(cls.kind != "pointwise" for layer in inner for cls in layer.attention.classes)


@pytest.mark.parametrize("direct", [True, False])
def test_a_loader_prepares_what_the_layers_of_molecules_ask_for(direct):
    settings = MoleculeEncoder(layers=1, channels=16, sharing="keys and queries", direct=direct)
    inner = next(module for module in settings.network(1).modules() if isinstance(module, EncoderLayer))
    assert inner.attention.program_same in settings.inputs.inner_programs()
