"""Molecules to batches with index sets and plans: all that depends on the molecules alone, made in loader workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch

from anyorder.algebra import (
    Lightweight,
    Program,
    Projecting,
    Sharing,
    attention_program,
    classes,
    linear_program,
    select_mlp,
)
from anyorder.algebra.program import Attention
from anyorder.experiments.molecules.batch import CollateMolecules, MoleculeBatch
from anyorder.experiments.molecules.store import Molecule
from anyorder.layers.blocks import attended
from anyorder.layouts import CompleteIndexSet, IndexSet, SparseIndexSet

Layer = Attention | Literal["linear"]


@dataclass(frozen=True)
class MoleculeInputs:
    """What a model reads of molecules; called with some of them, it makes their batch.

    ``order`` is that of the index set: 2 has atoms on the diagonal and bonds off it, 1 has atoms, 0 needs none. ``layer``
    says what kind of layers will ask for the plan: kernel attention with relaxed or exact coupling, softmax, or linear.
    """

    order: Literal[0, 1, 2] = 0
    layer: Layer = "relaxed"
    fingerprints: bool = False
    position_channels: int = 0
    sharing: Sharing = "none"
    projection_classes: Projecting = "pointwise"
    mlp_classes: Lightweight = "pointwise"
    direct: bool = True
    classes: str = "all"

    def __call__(self, molecules: Sequence[Molecule]) -> MoleculeBatch:
        batch = CollateMolecules(self.fingerprints, self.position_channels)(molecules)
        if self.order == 0:
            return batch
        index = atoms_and_bonds(batch) if self.order == 2 else CompleteIndexSet(1, batch.sizes)
        self.prepare(index)
        return replace(batch, index=index)

    def prepare(self, index: IndexSet) -> None:
        """Build the plans of layers on an index set and of a last layer to order 0."""
        graphs = index.with_order(0)
        assert graphs is not None
        for program in self.inner_programs():
            index.known(program, index)
        index.known(_last_program(index.order, self.layer), graphs)
        index.arrange()

    def inner_programs(self) -> list[Program]:
        """Those of layers from an index set to itself: attention and a lightweight MLP, or linear layers."""
        order = self.order
        if self.layer == "linear":
            return [linear_program(order, order, classes(order, order), "sum")]
        pools = attended(order, order, self.classes, self.direct)
        shared = (self.sharing, self.projection_classes)
        attention = attention_program(order, order, pools, (self.layer, self.layer), True, *shared)
        return [attention, *(linear_program(order, order, some, "sum") for some in select_mlp(order, self.mlp_classes))]


def atoms_and_bonds(batch: MoleculeBatch) -> SparseIndexSet:
    """The pairs of a batch: first every atom with itself, then both directions of every bond."""
    atoms = torch.arange(len(batch.atoms))
    pairs = torch.cat([atoms.expand(2, -1), batch.bond_index], 1).T.contiguous()
    return SparseIndexSet(pairs, num_nodes=len(atoms), node_graph=batch.graph, num_graphs=batch.num_graphs)


def _last_program(order: int, layer: Layer) -> Program:
    """That of the last layer; attention to order 0 is softmax always."""
    every = classes(order, 0)
    if layer == "linear":
        return linear_program(order, 0, every, "sum")
    return attention_program(order, 0, every, ("softmax", "softmax"), False)
