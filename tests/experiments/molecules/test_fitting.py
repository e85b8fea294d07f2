"""Models for people's own molecules: what follows from their number."""

from __future__ import annotations

import pytest

pytest.importorskip("lightning", reason="lightning is not installed")
from anyorder.experiments.molecules.fitting import MANY, MODELS, MoleculeFit, model_of
from anyorder.experiments.molecules.models import MoleculeEncoder
from anyorder.layers import INTO_NODES


def test_of_many_molecules_atoms_alone_attend() -> None:
    few, many = model_of(MoleculeFit(), MANY - 1), model_of(MoleculeFit(channels=32, layers=3), MANY)
    assert isinstance(few, MoleculeEncoder) and isinstance(many, MoleculeEncoder)
    assert few.classes == "all" and few.mlp_classes == "pointwise"
    assert {name: getattr(many, name) for name in INTO_NODES} == INTO_NODES
    count = [sum(weight.numel() for weight in each.network(1).parameters()) for each in (few, many)]
    assert count[1] < count[0]


@pytest.mark.parametrize("name", MODELS)
def test_every_model_has_the_asked_size(name: str) -> None:
    made = model_of(MoleculeFit(model=name, layers=5, channels=48), 10)
    assert (made.layers, made.channels) == (5, 48)  # type: ignore[attr-defined]
