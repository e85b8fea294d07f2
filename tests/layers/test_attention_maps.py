"""Attention written out: it gives what the layer gives, for every class and kernel; pictures of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from anyorder.algebra import EquivalenceClass, classes
from anyorder.experiments.molecules.attention import MoleculeAttention, draw, explain, find_classes
from anyorder.experiments.molecules.goals import MoleculeShapes
from anyorder.experiments.molecules.inputs import MoleculeInputs
from anyorder.experiments.molecules.models import MoleculeEncoder, MoleculeMessagePassing, MoleculeTransformer
from anyorder.experiments.molecules.store import Molecule
from anyorder.layers import Elu, EquivariantAttention, RandomFeatures, Softmax
from anyorder.layers.attention_maps import attention_map
from anyorder.layouts import Features, IndexSet
from anyorder.ops.backends import use_backend
from anyorder.training.pictures import contrast_colours

SMILES = ["CC(=O)Oc1ccccc1", "C", "[Na+].[Cl-]", "CCO"]
SHAPES = MoleculeShapes("regression", ("gap",), (5.0,), (2.0,))
POOLED = [
    pytest.param(cls, id=cls.name) for k, l in [(2, 2), (2, 0), (1, 1)] for cls in classes(k, l) if cls.kind != "pointwise"
]
KERNELS: dict[str, dict[str, Any]] = {
    "softmax": {"kernel": Softmax()},
    "relu": {"kernel": RandomFeatures()},
    "relu, exact": {"kernel": RandomFeatures(), "coupling": "exact"},
    "exponential": {"kernel": RandomFeatures(kind="softmax")},
    "elu, not normalised": {"kernel": Elu(), "normalize": False},
}


@pytest.fixture(autouse=True)
def _plain() -> Iterator[None]:
    with use_backend("reference"):
        yield


def features(order: int, channels: int) -> Features:
    layer: Any = "relaxed" if order == 2 else "softmax"
    batch = MoleculeInputs(order, layer)([Molecule.from_smiles(text) for text in SMILES])  # type: ignore[arg-type]
    index = batch.index
    assert isinstance(index, IndexSet)
    torch.manual_seed(1)
    return Features(index, torch.randn(index.num_entries, channels, dtype=torch.float64))


@pytest.mark.parametrize("cls", POOLED)
@pytest.mark.parametrize("kernel", KERNELS)
def test_coefficients_times_values_give_the_output_of_the_layer(cls: EquivalenceClass, kernel: str) -> None:
    settings = KERNELS[kernel] if cls.order_out else {}
    torch.manual_seed(0)
    attention = EquivariantAttention(
        order_in=cls.order_in, order_out=cls.order_out, channels=6, heads=2, head_channels=3, classes=[cls], **settings
    ).double()
    x = features(cls.order_in, 6)
    expected = attention(x)
    weights = attention.weights_of(cls)
    alpha = attention_map(attention, x, cls)
    value = torch.einsum("kc,chd->khd", x.index.entries(cls.source).read(x.rows), weights["value"])
    made = torch.einsum("hqk,khd,hdc->qc", alpha, value, weights["output"])
    torch.testing.assert_close(made, expected.index.entries(cls.target).read(expected.rows))
    if attention.normalize:
        totals = alpha.sum(-1)
        assert bool(((totals - 1).abs() < 1e-9).logical_or(totals == 0).all())


def test_a_pointwise_class_has_no_attention() -> None:
    attention = EquivariantAttention(order_in=2, order_out=2, channels=6, heads=1, head_channels=3).double()
    pointwise = next(cls for cls in attention.classes if cls.kind == "pointwise")
    with pytest.raises(ValueError, match="pointwise"):
        attention_map(attention, features(2, 6), pointwise)


def model_of(kind: str) -> tuple[torch.nn.Module, MoleculeInputs]:
    torch.manual_seed(0)
    config = MoleculeEncoder(2, 16, 2, 4, 2, 4) if kind == "ours" else MoleculeTransformer(2, 16, 2, 4)
    return config.build(SHAPES), config.inputs


ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"


def test_shares_of_atoms_and_bonds_add_up_to_one() -> None:
    found = explain(*model_of("ours"), ASPIRIN)
    assert found.atoms is not None and found.atoms.shape == (13,) and float(found.atoms.sum()) == pytest.approx(1)
    assert found.bonds is not None and found.bonds.shape == (13,) and float(found.bonds.sum()) == pytest.approx(1)
    assert "layer 3 of 3" in found.title and len(found.lines()) == 2


def test_a_class_reads_atoms_or_bonds_and_an_atom_sees_its_own_bonds() -> None:
    model, inputs = model_of("ours")
    atoms = explain(model, inputs, ASPIRIN, layer=1, cls="(j,j)->(i,i)")
    assert atoms.bonds is None and atoms.atoms is not None
    bonds = explain(model, inputs, ASPIRIN, layer=2, cls="(j,i) -> (i,i)", atom=4)
    assert bonds.atoms is None and bonds.bonds is not None
    assert bonds.bonds.nonzero().flatten().tolist() == [3, 4, 12], "O3-C4, C4-C5 and the closing C9-C4"


def test_symmetric_atoms_receive_the_same() -> None:
    found = explain(*model_of("ours"), "CCOCC")
    assert found.atoms is not None
    torch.testing.assert_close(found.atoms, found.atoms.flip(0))


@pytest.mark.parametrize("suffix", [".png", ".svg"])
@pytest.mark.parametrize("kind", ["ours", "transformer"])
@pytest.mark.parametrize("smiles", [ASPIRIN, "C", "[Na+].[Cl-]"])
def test_pictures_are_drawn(tmp_path: Path, suffix: str, kind: str, smiles: str) -> None:
    path = draw(explain(*model_of(kind), smiles), tmp_path / f"picture{suffix}")
    start = path.read_bytes()[:60]
    assert start.startswith(b"\x89PNG") if suffix == ".png" else b"<?xml" in start


def test_colours_follow_the_attention(tmp_path: Path) -> None:
    one = MoleculeAttention("CCO", "", torch.tensor([0.0, 0.0, 1.0]), None)
    other = MoleculeAttention("CCO", "", torch.tensor([1.0, 0.0, 0.0]), None)
    pictures = {draw(each, tmp_path / "a.png").read_bytes() for each in (one, other)}
    assert len(pictures) == 2


def test_colours_are_relative_to_equal_shares() -> None:
    less, equal, more = contrast_colours([0.3, 1.0, 3.0])
    assert equal == pytest.approx((0.97, 0.97, 0.97), abs=0.01)
    assert less[2] > less[1] and more[0] > more[2]  # violet and orange


def test_wrong_wishes_are_answered_with_what_there_is() -> None:
    model, inputs = model_of("ours")
    with pytest.raises(ValueError, match=r"between 1 and 3, got 4"):
        explain(model, inputs, "CCO", layer=4)
    with pytest.raises(ValueError, match=r"it has \(j,j\) -> \(i,i\)"):
        explain(model, inputs, "CCO", layer=1, cls="(x,y) -> (z)")
    with pytest.raises(ValueError, match="atom must be between 0 and 2"):
        explain(model, inputs, "CCO", layer=1, atom=3)
    with pytest.raises(ValueError, match="whole molecule"):
        explain(model, inputs, "CCO", atom=1)
    with pytest.raises(ValueError, match="not SMILES"):
        explain(model, inputs, "xx")
    gnn = MoleculeMessagePassing(layers=1, channels=8)
    with pytest.raises(ValueError, match="no attention"):
        explain(gnn.build(SHAPES), gnn.inputs, "CCO")
    with pytest.raises(ValueError, match=r"a picture is a \.png, \.svg, \.pdf file"):
        draw(explain(model, inputs, "CCO"), Path("picture.gif"))


def test_classes_are_found_by_name_with_or_without_spaces() -> None:
    attention = EquivariantAttention(order_in=2, order_out=2, channels=4, heads=1, head_channels=4)
    assert len(find_classes(attention, None)) == 10
    assert find_classes(attention, "(k,i)->(i,j)") == find_classes(attention, "(k,i) -> (i,j)")
