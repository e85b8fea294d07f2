"""Transforms of PyTorch Geometric: positions of nodes, and pairs with their plans made in a loader's workers."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from anyorder.extras import require
from anyorder.positions import laplacian_positions, random_walk_positions
from anyorder.pyg.pairs import PairSet

Transform: Any = require("torch_geometric.transforms", "pyg").BaseTransform


class AddRandomWalks(Transform):
    """Adds the probabilities that a random walk is back after 2, ..., ``steps`` + 1 steps, see `random_walk_positions`.

    >>> from torch_geometric.data import Data
    >>> path = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    >>> AddRandomWalks(steps=2)(path).random_walk_pe.shape
    torch.Size([3, 2])

    Args:
        steps: number of channels.
        name: the attribute to write; None appends them to ``x``.
    """

    def __init__(self, steps: int = 8, name: str | None = "random_walk_pe") -> None:
        self.steps, self.name = steps, name

    def forward(self, data: Any) -> Any:
        """The graph or batch with the probabilities as one more attribute."""
        graph, num_graphs = _graphs(data)
        return _add(data, self.name, random_walk_positions(data.edge_index, graph, num_graphs, self.steps))


class AddLaplacian(Transform):
    """Adds eigenvectors of the normalised Laplacian, see `laplacian_positions`; for training, flip their signs.

    >>> from torch_geometric.data import Data
    >>> path = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    >>> AddLaplacian(channels=2)(path).laplacian_pe.shape
    torch.Size([3, 2])

    Args:
        channels: number of eigenvectors.
        name: the attribute to write; None appends them to ``x``.
    """

    def __init__(self, channels: int = 8, name: str | None = "laplacian_pe") -> None:
        self.channels, self.name = channels, name

    def forward(self, data: Any) -> Any:
        """The graph or batch with the eigenvectors as one more attribute."""
        graph, num_graphs = _graphs(data)
        return _add(data, self.name, laplacian_positions(data.edge_index, graph, num_graphs, self.channels))


class PreparePairs(Transform):
    """Adds ``pairs``, the index set of a graph or batch with the plans of a model: pass ``pairs=batch.pairs`` to it.

    Plans are of a whole batch. A ``DataLoader`` collates graphs after its transforms: ``attach`` has its workers do this
    after. Loaders that sample from one graph take it as their ``transform``.

    >>> from anyorder.pyg import PairConv
    >>> from torch_geometric.data import Data
    >>> path = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    >>> PreparePairs(PairConv(1, heads=1))(path).pairs.index.num_entries
    7

    Args:
        model: a ``GraphTransformer``, ``PairConv`` or a module that holds some; only its structure is kept.
    """

    def __init__(self, model: nn.Module) -> None:
        self.layers = [copy.deepcopy(layer).to("meta") for layer in _outermost(model)]
        if not self.layers:
            raise ValueError(f"{type(model).__name__} holds no GraphTransformer and no PairConv to prepare pairs for")

    def forward(self, data: Any) -> Any:
        """The graph or batch with its index set as one more attribute."""
        batch = getattr(data, "batch", None)
        size = data.num_graphs if batch is not None else None
        data.pairs = PairSet.build(data.edge_index, num_nodes=data.num_nodes, batch=batch, batch_size=size)
        for layer in self.layers:
            layer.prepare(data.pairs)
        return data

    def attach(self, loader: Any) -> Any:
        """The loader, whose workers now do this to every batch."""
        loader.collate_fn = _Then(loader.collate_fn, self)
        return loader


@dataclass(frozen=True)
class _Then:
    """One function after another, as a value that workers can be sent."""

    first: Callable[[Any], Any]
    second: Callable[[Any], Any]

    def __call__(self, items: Any) -> Any:
        return self.second(self.first(items))


def _outermost(module: nn.Module) -> list[Any]:
    """Modules that prepare pairs, but not what is inside of them."""
    from anyorder.pyg.conv import PairConv
    from anyorder.pyg.model import GraphTransformer

    if isinstance(module, (PairConv, GraphTransformer)):
        return [module]
    return [found for child in module.children() for found in _outermost(child)]


def _graphs(data: Any) -> tuple[Tensor, int]:
    """The graph of each node, and how many graphs there are."""
    batch = getattr(data, "batch", None)
    if batch is None:
        return torch.zeros(data.num_nodes, dtype=torch.int64, device=data.edge_index.device), 1
    return batch, data.num_graphs


def _add(data: Any, name: str | None, positions: Tensor) -> Any:
    if name is not None:
        data[name] = positions
        return data
    data.x = positions if data.x is None else torch.cat([data.x, positions.to(data.x.dtype)], 1)
    return data
