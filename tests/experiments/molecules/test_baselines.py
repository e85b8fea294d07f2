"""Baselines on molecules: against their definitions atom by atom, their published sizes, and invariances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from anyorder.experiments.molecules.baselines import (
    CategoricalEncoder,
    FingerprintMLP,
    GCNConvolution,
    GINConvolution,
    MoleculeGNN,
)
from anyorder.experiments.molecules.batch import CollateMolecules, MoleculeBatch
from anyorder.experiments.molecules.store import Molecule
from learning import Fit, assert_learns

SMILES = ["CCO", "C", "c1ccccc1O", "[Na+].[Cl-]", "CC(C)C#N", "N[C@@H](C)C(=O)O"]
COLLATE = CollateMolecules(fingerprints=True)
GAPS = torch.tensor([1.0, 8.0, 3.0, 5.0, 2.0, 6.0])
ROWS: dict[str, Callable[..., nn.Module]] = {
    "GCN": lambda **given: MoleculeGNN(convolution=GCNConvolution, **given),
    "GIN": lambda **given: MoleculeGNN(convolution=GINConvolution, **given),
    "GCN-VN": lambda **given: MoleculeGNN(convolution=GCNConvolution, virtual_node=True, **given),
    "GIN-VN": lambda **given: MoleculeGNN(convolution=GINConvolution, virtual_node=True, **given),
    "fingerprint": lambda **given: FingerprintMLP(**given),
}
PUBLISHED_MILLIONS = {"GCN": 2.0, "GIN": 3.8, "GCN-VN": 4.9, "GIN-VN": 6.7, "fingerprint": 16.1}


def some(*numbers: int) -> MoleculeBatch:
    return COLLATE([Molecule.from_smiles(SMILES[i], (float(GAPS[i]),), i) for i in numbers])


def small(name: str) -> nn.Module:
    torch.manual_seed(0)
    model = ROWS[name](channels=16, num_layers=3)
    model(some(*range(6)))  # running statistics other than their start
    for parameter in model.parameters():
        if parameter.ndim == 1 and not parameter.any():
            nn.init.normal_(parameter)  # no zero hides a term
    return model.double()


def permuted(batch: MoleculeBatch) -> MoleculeBatch:
    """The same molecules with their atoms and bonds in another order."""
    generator = torch.Generator().manual_seed(1)
    noise = torch.rand(len(batch.atoms), generator=generator)
    order = torch.argsort(batch.graph + noise)
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order))
    bonds = torch.randperm(len(batch.bonds), generator=generator)
    return replace(batch, atoms=batch.atoms[order], bond_index=place[batch.bond_index][:, bonds], bonds=batch.bonds[bonds])


@pytest.mark.parametrize("name", ROWS)
class TestEveryRow:
    def test_has_the_published_size(self, name: str) -> None:
        count = sum(parameter.numel() for parameter in ROWS[name]().parameters())
        assert round(count / 1e6, 1) == PUBLISHED_MILLIONS[name]

    def test_does_not_see_the_order_of_atoms(self, name: str) -> None:
        model, batch = small(name).eval(), some(*range(6))
        other = permuted(batch)
        assert not torch.equal(batch.atoms, other.atoms)
        torch.testing.assert_close(model(other), model(batch), rtol=1e-10, atol=1e-10)

    def test_a_molecule_does_not_see_its_batch_neighbours(self, name: str) -> None:
        model = small(name).eval()
        together = model(some(*range(6)))
        assert together.shape == (6, 1) and len(together.unique()) == 6
        alone = torch.cat([model(some(i)) for i in range(6)])
        torch.testing.assert_close(alone, together, rtol=1e-10, atol=1e-10)

    @pytest.mark.numeric
    def test_learns(self, name: str) -> None:
        """Six molecules by heart. One number for all of them would leave about a quarter of the loss."""
        batch, built = some(*range(6)), list[nn.Module]()

        def make() -> Fit:
            model = ROWS[name](channels=16, num_layers=3)
            built.append(model)
            return model, lambda: (model(batch) - batch.targets).square().mean()

        # Statistics of the batch are no noise.
        assert_learns(make, lambda first: 0.1 * first, steps=60, rate=0.01, training=True)
        assert all(parameter.grad is not None for parameter in built[-1].parameters())

    def test_bounds_predictions_outside_training_only(self, name: str) -> None:
        model = ROWS[name](channels=16, num_layers=2, channels_out=3, output_range=(2.0, 2.0))
        assert not (model(some(0, 1, 2)) == 2.0).all()
        assert torch.equal(model.eval()(some(0, 1, 2)), torch.full((3, 3), 2.0))


def messages(x: Tensor, bonds: Tensor, batch: MoleculeBatch, weight: Callable[[int, int], float]) -> Tensor:
    """Sum over neighbours of relu(h_j + e_ij), weighted, one bond at a time."""
    out = torch.zeros_like(x)
    for number in range(len(bonds)):
        j, i = batch.bond_index[:, number].tolist()
        out[i] += weight(i, j) * (x[j] + bonds[number]).relu()
    return out


class TestDefinitions:
    def test_encoder_sums_embeddings(self) -> None:
        encoder = CategoricalEncoder((3, 2, 4), 5)
        first, second, third = torch.split(encoder.weight, [3, 2, 4])
        found = encoder(torch.tensor([[2, 1, 3], [0, 0, 0]]))
        torch.testing.assert_close(found, torch.stack([first[2] + second[1] + third[3], first[0] + second[0] + third[0]]))

    def test_gcn(self) -> None:
        torch.manual_seed(0)
        layer, batch = GCNConvolution(4).double(), some(*range(6))
        x = torch.randn(len(batch.atoms), 4, dtype=torch.float64)
        degree = [1 + int((batch.bond_index[1] == i).sum()) for i in range(len(x))]
        h = layer.linear(x)
        expected = messages(h, layer.bonds(batch.bonds), batch, lambda i, j: (degree[i] * degree[j]) ** -0.5)
        expected = expected + (h + layer.root).relu() / torch.tensor(degree)[:, None]
        torch.testing.assert_close(layer(x, batch), expected)

    def test_gin(self) -> None:
        torch.manual_seed(0)
        layer, batch = GINConvolution(4).double().eval(), some(*range(6))
        nn.init.constant_(layer.convolution.eps, 0.3)
        x = torch.randn(len(batch.atoms), 4, dtype=torch.float64)
        pooled = 1.3 * x + messages(x, layer.bonds(batch.bonds), batch, lambda i, j: 1.0)
        torch.testing.assert_close(layer(x, batch), layer.convolution.nn(pooled))

    def test_virtual_node_joins_parts_without_bonds(self) -> None:
        """In NaCl the ions share no bond: only the virtual node carries anything from one to the other."""
        batch = some(3)
        changed = replace(batch, atoms=batch.atoms.clone())
        changed.atoms[1, 0] = 34
        for name, carries in (("GIN", False), ("GIN-VN", True)):
            model = small(name).eval()
            assert isinstance(model, MoleculeGNN)
            atoms: list[Tensor] = []
            model.norms[-1].register_forward_hook(lambda _, __, out, kept=atoms: kept.append(out))
            model(batch), model(changed)
            assert bool((atoms[0][0] - atoms[1][0]).abs().max() > 1e-9) == carries

    def test_mean_pooling(self) -> None:
        model = MoleculeGNN(convolution=GCNConvolution, channels=8, num_layers=2, pooling="mean").double().eval()
        summed = MoleculeGNN(convolution=GCNConvolution, channels=8, num_layers=2).double().eval()
        summed.load_state_dict(model.state_dict())
        batch = some(*range(6))
        sizes, bias = batch.sizes[:, None], model.head.bias
        torch.testing.assert_close((model(batch) - bias) * sizes, summed(batch) - bias)

    def test_errors(self) -> None:
        with pytest.raises(ValueError, match="pooling sum or mean, got 2 and 'max'"):
            MoleculeGNN(convolution=GCNConvolution, num_layers=2, pooling="max")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="collate with CollateMolecules"):
            FingerprintMLP(channels=4, num_layers=1)(replace(some(0), fingerprints=None))
