"""Batches of molecules, the sampler of similar sizes, and Laplacian positions."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from anyorder.experiments.molecules.batch import CollateMolecules, MoleculeBatch, SimilarSizeBatches
from anyorder.experiments.molecules.graphs import fingerprint
from anyorder.experiments.molecules.store import Molecule
from anyorder.positions import flip_signs, laplacian_positions

SMILES = ["CCO", "C", "c1ccccc1O", "[Na+].[Cl-]", "CC(C)C#N"]


def molecules() -> list[Molecule]:
    return [Molecule.from_smiles(smiles, (1.5 * i, np.nan), row=10 + i) for i, smiles in enumerate(SMILES)]


class TestBatch:
    def test_holds_every_molecule_at_its_place(self) -> None:
        parts = molecules()
        batch = CollateMolecules(fingerprints=True)(parts)
        assert len(batch) == 5 and batch.rows.tolist() == [10, 11, 12, 13, 14]
        assert batch.targets.dtype == torch.float32 and batch.targets[:, 0].tolist() == [0, 1.5, 3, 4.5, 6]
        assert batch.observed.tolist() == [[True, False]] * 5
        assert batch.sizes.tolist() == [3, 1, 7, 2, 5]
        assert batch.fingerprints is not None
        np.testing.assert_array_equal(batch.fingerprints, np.stack([fingerprint(smiles) for smiles in SMILES]))
        for number, part in enumerate(parts):
            first = int(batch.sizes[:number].sum())
            mine = batch.graph[batch.bond_index[0]] == number
            np.testing.assert_array_equal(batch.atoms[batch.graph == number], part.atoms)
            np.testing.assert_array_equal(batch.bond_index[:, mine] - first, part.bond_index)
            np.testing.assert_array_equal(batch.bonds[mine], part.bonds)

    def test_moves_every_tensor(self) -> None:
        batch = CollateMolecules(fingerprints=True, position_channels=2)(molecules()).to("meta")
        tensors = [value for value in vars(batch).values() if isinstance(value, torch.Tensor)]
        assert len(tensors) == 8 and all(tensor.is_meta for tensor in tensors)

    @pytest.mark.skipif(not torch.cuda.is_available(), reason="page-locked memory needs a GPU")
    def test_pins_every_tensor(self) -> None:
        assert CollateMolecules()(molecules()).pin_memory().atoms.is_pinned()

    def test_refuses_what_does_not_fit(self) -> None:
        with pytest.raises(ValueError, match="at least one molecule"):
            CollateMolecules()([])
        bare = [
            Molecule(*(getattr(part, name) for name in ("atoms", "bond_index", "bonds", "targets", "row")))
            for part in molecules()
        ]
        with pytest.raises(ValueError, match="no fingerprints: build it with"):
            CollateMolecules(fingerprints=True)(bare)
        batch = CollateMolecules()(bare)
        with pytest.raises(ValueError, match=r"got shapes \(17,\) and \(2, 26\) for 18 atoms and 26 bonds"):
            MoleculeBatch(batch.atoms, batch.bond_index, batch.bonds, batch.graph[1:], 5, batch.targets, batch.rows)
        with pytest.raises(ValueError, match="expected targets and rows of 4 graphs, got 5 and 5"):
            MoleculeBatch(batch.atoms, batch.bond_index, batch.bonds, batch.graph, 4, batch.targets, batch.rows)


class TestSampler:
    sizes = np.random.default_rng(0).integers(1, 50, 1003)

    def make(self, **changes: object) -> SimilarSizeBatches:
        return SimilarSizeBatches(self.sizes, **{"batch_size": 16, "pool_batches": 8, **changes})  # type: ignore[arg-type]

    @pytest.mark.parametrize("shuffle", [True, False])
    def test_every_molecule_once(self, shuffle: bool) -> None:
        batches = list(self.make(shuffle=shuffle))
        assert sorted(index for batch in batches for index in batch) == list(range(1003))
        assert len(batches) == len(self.make(shuffle=shuffle)) == 63

    def test_the_order_depends_on_seed_and_epoch_alone(self) -> None:
        first, again, seed, epoch = self.make(), self.make(), self.make(seed=1), self.make()
        epoch.set_epoch(1)
        assert list(first) == list(first) == list(again)
        assert list(first) != list(seed) and list(first) != list(epoch) and list(seed) != list(epoch)
        epoch.set_epoch(0)
        assert list(first) == list(epoch)
        assert first.sampler is first

    def test_sizes_in_a_batch_are_similar_and_batches_are_not_in_order(self) -> None:
        batches = self.make().global_batches()
        spreads = [np.ptp(self.sizes[batch]) for batch in batches]
        assert np.mean(spreads) < 10  # of 48; about 43 for random batches
        means = np.array([self.sizes[batch].mean() for batch in batches])
        assert abs(np.corrcoef(means[1:], means[:-1])[0, 1]) < 0.4

    @pytest.mark.parametrize("processes", [2, 3])
    @pytest.mark.parametrize("count", [1003, 992, 993, 995])
    def test_processes_share_the_batches_of_one(self, processes: int, count: int) -> None:
        members = np.arange(count) + 1003 - count
        ranks = [list(self.make(members=members, rank=r, num_processes=processes)) for r in range(processes)]
        single = self.make(members=members, num_processes=processes).global_batches()
        assert len({len(rank) for rank in ranks}) == 1
        for step, batch in enumerate(single):
            parts = [rank[step] for rank in ranks]
            assert sorted(chain(*parts)) == sorted(batch.tolist())
            assert min(map(len, parts)) >= 2 and max(map(len, parts)) - min(map(len, parts)) <= 1

    def test_full_batches_do_not_depend_on_the_number_of_processes(self) -> None:
        one = self.make(drop_last=True).global_batches()
        four = self.make(drop_last=True, num_processes=4).global_batches()
        assert len(one) == 62 and all(len(batch) == 16 for batch in one)
        assert all(np.array_equal(a, b) for a, b in zip(one, four, strict=True))

    def test_a_part_of_a_store(self) -> None:
        members = np.array([5, 900, 17, 4])
        assert sorted(chain(*SimilarSizeBatches(self.sizes, batch_size=2, members=members))) == [4, 5, 17, 900]
        assert [len(batch) for batch in SimilarSizeBatches(self.sizes, batch_size=3, members=members)] == [4]

    @pytest.mark.parametrize(
        "changes",
        [
            {"rank": 2, "num_processes": 2},
            {"num_processes": 17},
            {"pool_batches": 0},
            {"members": np.arange(0)},
            {"members": np.arange(15), "drop_last": True},
        ],
    )
    def test_refuses_what_cannot_be(self, changes: dict[str, object]) -> None:
        with pytest.raises(ValueError, match=r"expected rank < num_processes|do not fill a batch"):
            self.make(**changes)


def laplacian(count: int, edges: list[tuple[int, int]]) -> NDArray[np.float64]:
    adjacency = np.zeros((count, count))
    for i, j in edges:
        adjacency[i, j] = adjacency[j, i] = 1
    degree = adjacency.sum(1)
    root = np.where(degree > 0, 1 / np.sqrt(np.maximum(degree, 1)), 0)
    return np.diag((degree > 0).astype(float)) - root[:, None] * adjacency * root[None, :]


class TestLaplacian:
    def test_are_the_smallest_nontrivial_eigenvectors_of_each_graph(self) -> None:
        random = np.random.default_rng(0)
        graphs: list[tuple[int, list[tuple[int, int]]]] = [(1, []), (3, []), (2, [(0, 1)])]
        for count in (4, 7, 7, 12, 5, 30):
            pairs = [(i, j) for i in range(count) for j in range(i)]
            graphs.append((count, [pair for pair in pairs if random.random() < 0.3]))
        owner = torch.tensor([g for g, (count, _) in enumerate(graphs) for _ in range(count)])
        first = np.cumsum([0, *(count for count, _ in graphs)])
        edges = [
            (first[g] + a, first[g] + b) for g, (_, es) in enumerate(graphs) for i, j in es for a, b in ((i, j), (j, i))
        ]
        shuffled = torch.tensor(edges).T[:, torch.randperm(len(edges), generator=torch.Generator().manual_seed(0))]
        found = laplacian_positions(shuffled, owner, len(graphs), 6)
        assert found.shape == (len(owner), 6) and found.dtype == torch.float32
        for g, (count, own) in enumerate(graphs):
            matrix = laplacian(count, own)
            values = np.linalg.eigvalsh(matrix)
            nontrivial = values[values > 1e-6][:6]
            vectors = found[owner == g].double().numpy()
            assert not vectors[:, len(nontrivial) :].any()
            vectors = vectors[:, : len(nontrivial)]
            np.testing.assert_allclose(matrix @ vectors, vectors * nontrivial, atol=1e-6)
            np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(nontrivial)), atol=1e-6)

    def test_ions_have_none(self) -> None:
        batch = CollateMolecules(position_channels=4)([Molecule.from_smiles(text, (0.0,)) for text in SMILES])
        assert batch.positions is not None
        assert not batch.positions[batch.graph == 3].any() and not batch.positions[batch.graph == 1].any()
        assert batch.positions[batch.graph == 2].any() and bool(batch.positions.isfinite().all())

    def test_signs_flip_as_one_for_each_vector_of_each_graph(self) -> None:
        graph = torch.arange(200).repeat_interleave(3)
        flipped = flip_signs(torch.ones(600, 4), graph, 200, torch.Generator().manual_seed(0)).view(200, 3, 4)
        assert torch.equal(flipped.abs(), torch.ones(200, 3, 4))
        assert torch.equal(flipped[:, 0], flipped[:, 1]) and torch.equal(flipped[:, 0], flipped[:, 2])
        assert bool((flipped[:, 0].mean(0).abs() < 0.25).all())  # both signs, about as often
        assert torch.corrcoef(flipped[:, 0].T).fill_diagonal_(0).abs().max() < 0.25  # each vector on its own

    @pytest.mark.parametrize(
        "call",
        [
            lambda: laplacian_positions(torch.empty(2, 0, dtype=torch.long), torch.tensor([0]), 1, 0),
            lambda: laplacian_positions(torch.empty(3, 0, dtype=torch.long), torch.tensor([0]), 1, 2),
            lambda: laplacian_positions(torch.empty(2, 0, dtype=torch.long), torch.tensor([1, 0]), 2, 2),
        ],
    )
    def test_refuses_what_is_no_batch(self, call: Callable[[], torch.Tensor]) -> None:
        with pytest.raises(ValueError, match=r"expected channels >= 1|must not decrease"):
            call()
