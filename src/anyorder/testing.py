"""Helpers to test equivariant layers, also those that users write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from anyorder.layouts import CompleteIndexSet, DenseIndexSet, Features, IndexSet, SparseIndexSet

Module = Callable[..., Features]
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}


def random_index_set(
    order: int,
    *,
    num_nodes: int = 6,
    num_graphs: int = 2,
    layout: Literal["sparse", "dense", "complete"] = "sparse",
    density: float = 0.5,
    like: IndexSet | None = None,
    generator: torch.Generator | None = None,
) -> IndexSet:
    """A random index set: a share ``density`` of all tuples, unsorted; or all tuples of a padded grid.

    ``like`` gives the nodes and graphs of a sparse set, so that it can be the target of another.

    >>> random_index_set(2, num_nodes=4, num_graphs=1, density=1.0).num_entries
    16

    Args:
        order: number of nodes in a tuple.
        num_nodes, num_graphs: nodes of all graphs together, and graphs; of a grid, places for the nodes of a graph.
        layout: ``"sparse"``, ``"dense"`` (a grid) or ``"complete"``.
        density: share of the tuples, or of the nodes of a grid, that are there.
        like: an index set on the same nodes.
        generator: of what is drawn; None takes torch's own.
    """
    if like is not None:
        every = like.complete(order).tuples
        some = every if order == 0 else every[torch.randperm(len(every), generator=generator)[: round(density * len(every))]]
        return SparseIndexSet(some, num_nodes=like.num_nodes, node_graph=like.node_graph, num_graphs=like.num_graphs)
    node_graph = torch.arange(num_nodes) * num_graphs // max(num_nodes, 1)
    sizes = torch.bincount(node_graph, minlength=num_graphs)
    if layout == "dense":
        width = int(sizes.max()) + 1 if num_graphs else 1
        scores = torch.rand(num_graphs, width, generator=generator).argsort(1)
        return DenseIndexSet(order, scores < sizes[:, None])
    complete = CompleteIndexSet(order, sizes)
    if layout == "complete":
        return complete
    renamed = torch.randperm(num_nodes, generator=generator)
    graphs = torch.empty_like(node_graph)
    graphs[renamed] = node_graph
    tuples = renamed[complete.tuples]
    if order:
        chosen = torch.randperm(len(tuples), generator=generator)[: round(density * len(tuples))]
        tuples = tuples[chosen]
    return SparseIndexSet(tuples, num_nodes=num_nodes, node_graph=graphs, num_graphs=num_graphs)


def random_features(
    order: int,
    *,
    channels: int = 3,
    num_nodes: int = 6,
    num_graphs: int = 2,
    layout: Literal["sparse", "dense", "complete"] = "sparse",
    density: float = 0.5,
    dtype: torch.dtype = torch.float64,
    generator: torch.Generator | None = None,
) -> Features:
    """Random values on a random index set.

    >>> random_features(order=1, channels=4).rows.shape
    torch.Size([3, 4])

    Args:
        order, num_nodes, num_graphs, layout, density, generator: as of ``random_index_set``.
        channels: width of the values.
        dtype: their type.
    """
    index = random_index_set(
        order, num_nodes=num_nodes, num_graphs=num_graphs, layout=layout, density=density, generator=generator
    )
    return Features.of_rows(index, torch.randn(index.num_entries, channels, dtype=dtype, generator=generator))


def assert_equivariant(
    module: Module, x: Features, target: IndexSet | None = None, *, tolerance: float | None = None, seed: int = 0
) -> None:
    """Check that renaming nodes, and reordering entries, does the same to the output of a module and nothing else.

    >>> from anyorder import EquivariantLinear
    >>> layer = EquivariantLinear(order_in=1, order_out=1, channels_in=3, channels_out=2).double()
    >>> assert_equivariant(layer, random_features(order=1, channels=3))

    Args:
        module: takes features, and the target where one is given.
        x: an input to try it on.
        target: the index set of the output, for modules that need one.
        tolerance: largest difference allowed; by default what the type of ``x`` can hold.
        seed: of the permutations.
    """
    generator = torch.Generator().manual_seed(seed)
    limit = TOLERANCE.get(x.dtype, 1e-2) if tolerance is None else tolerance
    known = _call(module, x, target)
    rename = _renaming(x.index, generator)
    moved_target = None if target is None else _renamed(target, rename)[0]
    index, rows = _renamed(x.index, rename)
    moved = _call(module, Features.of_rows(index, x.rows[rows]), moved_target)
    _compare(known, moved, rename, limit, "renaming the nodes")
    if isinstance(x.index, SparseIndexSet) and x.index.order > 0:
        order = torch.randperm(x.index.num_entries, generator=generator)
        shuffled = SparseIndexSet(
            x.index.tuples[order], num_nodes=x.num_nodes, node_graph=x.index.node_graph, num_graphs=x.num_graphs
        )
        other = None if target is None else target
        if target is x.index:
            other = shuffled
        again = _call(module, Features.of_rows(shuffled, x.rows[order]), other)
        _compare(known, again, torch.arange(x.num_nodes), limit, "reordering the entries")


def _call(module: Module, x: Features, target: IndexSet | None) -> Features:
    with torch.no_grad():
        return module(x) if target is None else module(x, target)


def _renaming(index: IndexSet, generator: torch.Generator) -> Tensor:
    """A permutation of the nodes: any for sparse index sets, within each graph for complete ones."""
    shuffled = torch.randperm(index.num_nodes, generator=generator)
    if isinstance(index, CompleteIndexSet):
        shuffled = shuffled[torch.argsort(index.node_graph[shuffled], stable=True)]
    return shuffled


def _renamed(index: IndexSet, rename: Tensor) -> tuple[IndexSet, Tensor]:
    """The index set with node v called rename[v], and which old row each of its rows has."""
    if isinstance(index, CompleteIndexSet):
        back = torch.argsort(rename)
        return index, index.find(back[index.tuples], index.entry_graph)
    node_graph = torch.empty_like(index.node_graph)
    node_graph[rename] = index.node_graph
    renamed = SparseIndexSet(
        rename[index.tuples], num_nodes=index.num_nodes, node_graph=node_graph, num_graphs=index.num_graphs
    )
    return renamed, torch.arange(index.num_entries)


def _compare(known: Features, moved: Features, rename: Tensor, limit: float, what: str) -> None:
    if known.index.num_entries != moved.index.num_entries:
        raise AssertionError(
            f"not equivariant: {what} changed the number of output entries "
            f"from {known.index.num_entries} to {moved.index.num_entries}"
        )
    rows = moved.index.find(rename[known.index.tuples], known.index.entry_graph)
    if bool((rows < 0).any()):
        lost = known.index.tuples[rows < 0][0].tolist()
        raise AssertionError(f"not equivariant: after {what}, output entry {lost} has no counterpart")
    if known.rows.numel() == 0:
        return
    difference = (known.rows - moved.rows[rows]).abs()
    if not bool((difference <= limit).all()):
        worst = int(difference.amax(1).nan_to_num(torch.inf).argmax())
        raise AssertionError(
            f"not equivariant: after {what}, output entry {known.index.tuples[worst].tolist()} differs by "
            f"{float(difference[worst].max()):.3g}, more than {limit:.3g}"
        )
