"""Molecules to batches with index sets and plans: all that depends on the molecules alone, made in loader workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch

from anyorder.algebra import Pool, classes, expansion, pools, set_partitions
from anyorder.experiments.molecules.batch import CollateMolecules, MoleculeBatch
from anyorder.experiments.molecules.store import Molecule
from anyorder.layers.softmax import prepare_softmax
from anyorder.layouts import CompleteIndexSet, IndexSet, Plan, SparseIndexSet

Layer = Literal["relaxed", "exact", "softmax", "linear"]


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

    def __call__(self, molecules: Sequence[Molecule]) -> MoleculeBatch:
        batch = CollateMolecules(self.fingerprints, self.position_channels)(molecules)
        if self.order == 0:
            return batch
        index = atoms_and_bonds(batch) if self.order == 2 else CompleteIndexSet(1, batch.sizes)
        prepare(index, self.layer)
        return replace(batch, index=index)


def atoms_and_bonds(batch: MoleculeBatch) -> SparseIndexSet:
    """The pairs of a batch: first every atom with itself, then both directions of every bond."""
    atoms = torch.arange(len(batch.atoms))
    pairs = torch.cat([atoms.expand(2, -1), batch.bond_index], 1).T.contiguous()
    return SparseIndexSet(pairs, num_nodes=len(atoms), node_graph=batch.graph, num_graphs=batch.num_graphs)


def prepare(index: IndexSet, layer: Layer) -> None:
    """Work out the plans of layers on an index set and of a last layer to order 0."""
    graphs = index.with_order(0)
    assert graphs is not None
    inner, last = index.plan(index), index.plan(graphs)
    if layer == "linear":
        _prepare_linear(inner)
        _prepare_linear(last)
        index.arrange()
        return
    if layer == "softmax":
        _prepare_softmax(inner)
    elif layer == "relaxed":
        _prepare_relaxed(inner)
    else:
        inner.prepare(classes(index.order, index.order), coupling=layer)
    _prepare_softmax(last)  # attention to order 0 is softmax always
    index.arrange()


def _prepare_relaxed(plan: Plan) -> None:
    every = classes(plan.source.order, plan.target.order)
    for cls in every:
        if cls.kind == "pointwise":
            plan.pointwise(cls)
    for pattern in set_partitions(plan.target.order):  # classes into a pattern that share their keys are one call
        pooled = [cls for cls in every if cls.kind != "pointwise" and cls.target == pattern]
        for shared in pools(pooled).values():
            plan.keys(shared[0])
            plan.asked(shared)


def _prepare_softmax(plan: Plan) -> None:
    for cls in classes(plan.source.order, plan.target.order):
        if cls.kind == "pointwise":
            plan.pointwise(cls)
        else:
            prepare_softmax(plan, cls)


def _prepare_linear(plan: Plan) -> None:
    terms = {term for cls in classes(plan.source.order, plan.target.order) for _, term in expansion(cls)}
    for term in terms:
        if term.kind == "pointwise":
            plan.pointwise(term)
        else:
            plan.groups(Pool(term.source, term.matched_source))
            plan.spread(term)
