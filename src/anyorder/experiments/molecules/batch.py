"""Batches of molecules: one value for every model, and a sampler whose batches hold molecules of similar size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Sampler

from anyorder.experiments.molecules.graphs import FINGERPRINT_BITS
from anyorder.experiments.molecules.store import Molecule
from anyorder.layouts import IndexSet
from anyorder.layouts.transfer import Transferable


@dataclass(frozen=True, eq=False)
class MoleculeBatch(Transferable):
    """Molecules side by side: atoms are numbered through, ``graph`` says whose each atom is.

    ``atoms (atom, 9)``, ``bond_index (2, bond)`` with both directions of every bond, ``bonds (bond, 3)``,
    ``graph (atom,)`` not decreasing, ``targets (graph, target)`` with NaN where missing, ``rows (graph,)``.
    """

    atoms: Tensor
    bond_index: Tensor
    bonds: Tensor
    graph: Tensor
    num_graphs: int
    targets: Tensor
    rows: Tensor
    fingerprints: Tensor | None = None  # (graph, 2048) zeros and ones
    positions: Tensor | None = None  # (atom, channel) Laplacian positions
    index: IndexSet | None = None  # which tuples of atoms a model of higher order works on

    def __post_init__(self) -> None:
        if self.graph.shape != self.atoms.shape[:1] or self.bond_index.shape != (2, len(self.bonds)):
            raise ValueError(
                "graph must have one entry per atom and bond_index be (2, bond): got shapes "
                f"{tuple(self.graph.shape)} and {tuple(self.bond_index.shape)} for {len(self.atoms)} atoms "
                f"and {len(self.bonds)} bonds"
            )
        if len(self.targets) != self.num_graphs or len(self.rows) != self.num_graphs:
            raise ValueError(
                f"expected targets and rows of {self.num_graphs} graphs, got {len(self.targets)} and {len(self.rows)}"
            )

    def __len__(self) -> int:
        return self.num_graphs

    @property
    def sizes(self) -> Tensor:
        """Number of atoms of each molecule."""
        return torch.bincount(self.graph, minlength=self.num_graphs)

    @property
    def observed(self) -> Tensor:
        """Which targets are there."""
        return ~self.targets.isnan()


@dataclass(frozen=True)
class CollateMolecules:
    """Molecules to a `MoleculeBatch`; the ``collate_fn`` of a DataLoader, run in its workers.

    ``position_channels`` adds the Laplacian positions, ``fingerprints`` the Morgan bits.
    """

    fingerprints: bool = False
    position_channels: int = 0

    def __call__(self, molecules: Sequence[Molecule]) -> MoleculeBatch:
        if not molecules:
            raise ValueError("a batch needs at least one molecule")
        atoms_of = np.array([len(molecule.atoms) for molecule in molecules])
        bonds_of = np.array([len(molecule.bonds) for molecule in molecules])
        first_atom = np.cumsum(atoms_of) - atoms_of
        bond_index = np.concatenate([molecule.bond_index for molecule in molecules], axis=1).astype(np.int64)
        batch = MoleculeBatch(
            atoms=_integers([molecule.atoms for molecule in molecules]),
            bond_index=torch.from_numpy(bond_index + np.repeat(first_atom, bonds_of)),
            bonds=_integers([molecule.bonds for molecule in molecules]),
            graph=torch.from_numpy(np.repeat(np.arange(len(molecules)), atoms_of)),
            num_graphs=len(molecules),
            targets=torch.from_numpy(np.stack([molecule.targets for molecule in molecules]).astype(np.float32)),
            rows=torch.tensor([molecule.row for molecule in molecules]),
            fingerprints=_unpacked(molecules) if self.fingerprints else None,
        )
        if not self.position_channels:
            return batch
        from anyorder.positions import laplacian_positions

        positions = laplacian_positions(batch.bond_index, batch.graph, batch.num_graphs, self.position_channels)
        return replace(batch, positions=positions)


def _integers(parts: Sequence[NDArray[Any]]) -> Tensor:
    return torch.from_numpy(np.concatenate(parts).astype(np.int64))


def _unpacked(molecules: Sequence[Molecule]) -> Tensor:
    packed = [molecule.fingerprint for molecule in molecules if molecule.fingerprint is not None]
    if len(packed) != len(molecules):
        raise ValueError("the store has no fingerprints: build it with BuildOptions(fingerprints=True)")
    return torch.from_numpy(np.unpackbits(np.stack(packed), axis=1, count=FINGERPRINT_BITS))


class SimilarSizeBatches(Sampler[list[int]]):
    """Batches of molecules of similar size; the ``batch_sampler`` of a DataLoader.

    The members are shuffled by (seed, epoch), cut into pools of ``pool_batches`` batches, sorted by size in each pool,
    cut into batches, and the batches are shuffled. ``batch_size`` is that of all processes together: process ``rank`` of
    ``num_processes`` takes every ``num_processes``-th molecule of each batch, so that training sees the same global
    batches on any number of processes. A last batch too small to give two molecules to every process joins the one before.

    >>> list(SimilarSizeBatches(np.array([3, 1, 2, 9]), batch_size=2, shuffle=False))
    [[1, 2], [0, 3]]
    """

    def __init__(
        self,
        sizes: NDArray[np.integer[Any]],
        *,
        batch_size: int,
        members: NDArray[np.integer[Any]] | None = None,
        seed: int = 0,
        shuffle: bool = True,
        drop_last: bool = False,
        pool_batches: int = 64,
        rank: int = 0,
        num_processes: int = 1,
    ) -> None:
        """``sizes`` is that of every molecule of a store; ``members`` the indices of a part of it."""
        self.members = np.arange(len(sizes)) if members is None else np.asarray(members)
        if batch_size < num_processes or pool_batches < 1 or not 0 <= rank < num_processes:
            raise ValueError(
                f"expected rank < num_processes <= batch_size and pool_batches >= 1, got rank {rank}, num_processes "
                f"{num_processes}, batch_size {batch_size}, pool_batches {pool_batches}"
            )
        if len(self.members) < (batch_size if drop_last else num_processes if shuffle else 1):
            raise ValueError(
                f"{len(self.members)} molecules do not fill a batch of {batch_size} in {num_processes} processes"
            )
        self.sizes = np.asarray(sizes)[self.members]
        self.batch_size, self.pool_batches, self.seed, self.epoch = batch_size, pool_batches, seed, 0
        self.shuffle, self.drop_last = shuffle, drop_last
        self.rank, self.num_processes = rank, num_processes

    @property
    def sampler(self) -> SimilarSizeBatches:
        """Itself: trainers look here for ``set_epoch``."""
        return self

    def set_epoch(self, epoch: int) -> None:
        """Choose the shuffling of an epoch."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self._bounds())

    def __iter__(self) -> Iterator[list[int]]:
        for batch in self.global_batches():
            yield batch[self.rank :: self.num_processes].tolist()

    def global_batches(self) -> list[NDArray[np.int64]]:
        """The batches of this epoch over all processes."""
        random = np.random.default_rng((self.seed, self.epoch))
        count = len(self.members)
        order = random.permutation(count) if self.shuffle else np.arange(count)
        pool = np.arange(count) // (self.batch_size * self.pool_batches if self.shuffle else max(count, 1))
        order = order[np.lexsort((self.sizes[order], pool))]
        batches = [self.members[order[begin:end]] for begin, end in self._bounds()]
        return [batches[i] for i in random.permutation(len(batches))] if self.shuffle else batches

    def _bounds(self) -> list[tuple[int, int]]:
        count = len(self.members)
        cuts = list(range(0, count, self.batch_size))
        tail = count - cuts[-1]
        if len(cuts) > 1 and tail < self.batch_size and (self.drop_last or tail < 2 * self.num_processes):
            cuts.pop()
            count = count - tail if self.drop_last else count
        return list(zip(cuts, [*cuts[1:], count], strict=True))
