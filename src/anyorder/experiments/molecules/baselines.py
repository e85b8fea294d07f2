"""Baselines for graph regression on molecules: an MLP on fingerprints, GCN and GIN, with and without a virtual node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from anyorder.experiments.molecules.batch import MoleculeBatch
from anyorder.experiments.molecules.graphs import ATOM_FEATURES, BOND_FEATURES, FINGERPRINT_BITS
from anyorder.extras import require


class CategoricalEncoder(nn.Module):
    """The sum of an embedding of each categorical feature, ``sum_f E_f[x_f]``."""

    def __init__(self, num_values: Sequence[int], channels: int) -> None:
        super().__init__()
        offsets = torch.tensor([0, *accumulate(num_values[:-1])])
        self.register_buffer("offsets", offsets, persistent=False)
        self.weight = nn.Parameter(torch.empty(sum(num_values), channels))
        for table in torch.split(self.weight.data, list(num_values)):
            nn.init.xavier_uniform_(table)

    offsets: Tensor

    def forward(self, features: Tensor) -> Tensor:
        return functional.embedding_bag(features + self.offsets, self.weight, mode="sum")


class GCNConvolution(nn.Module):
    r"""Graph convolution with bond embeddings and a learned root.

    .. math:: h_i' = \sum_{j \sim i} \frac{\mathrm{relu}(W h_j + e_{ij})}{\sqrt{d_i d_j}}
        + \frac{\mathrm{relu}(W h_i + r)}{d_i}, \qquad d_i = 1 + \text{number of neighbours}
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.linear = nn.Linear(channels, channels)
        self.root = nn.Parameter(torch.randn(channels))
        self.bonds = CategoricalEncoder(tuple(BOND_FEATURES.values()), channels)

    def forward(self, x: Tensor, batch: MoleculeBatch) -> Tensor:
        x = self.linear(x)
        source, target = batch.bond_index
        degree = (torch.bincount(target, minlength=len(x)) + 1).to(x.dtype)
        scale = degree.rsqrt()
        messages = (x[source] + self.bonds(batch.bonds)).relu() * (scale[source] * scale[target])[:, None]
        return ((x + self.root).relu() / degree[:, None]).index_add(0, target, messages)


class GINConvolution(nn.Module):
    r"""Graph isomorphism layer with bond embeddings, ``MLP((1 + eps) h_i + sum_j relu(h_j + e_ij))``."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        hidden = (nn.Linear(channels, channels), nn.BatchNorm1d(channels), nn.ReLU(), nn.Linear(channels, channels))
        layers = require("torch_geometric.nn", "pyg")
        self.convolution = layers.GINEConv(nn.Sequential(*hidden), train_eps=True)
        self.bonds = CategoricalEncoder(tuple(BOND_FEATURES.values()), channels)

    def forward(self, x: Tensor, batch: MoleculeBatch) -> Tensor:
        out: Tensor = self.convolution(x, batch.bond_index, self.bonds(batch.bonds))
        return out


class VirtualNode(nn.Module):
    """One more node per graph, joined to all its atoms: ``v' = MLP(v + sum_i h_i)``."""

    def __init__(self, channels: int, dropout: float) -> None:
        super().__init__()
        steps = [(nn.Linear(channels, channels), nn.BatchNorm1d(channels), nn.ReLU()) for _ in range(2)]
        self.update = nn.Sequential(*steps[0], *steps[1], nn.Dropout(dropout))

    def forward(self, virtual: Tensor, x: Tensor, graph: Tensor) -> Tensor:
        out: Tensor = self.update(virtual.index_add(0, graph, x))
        return out


class MoleculeGNN(nn.Module):
    """Message passing on a molecule and a linear read-out of the pooled atoms: OGB's baselines for PCQM4M.

    ``convolution`` is `GCNConvolution` or `GINConvolution`. ``output_range`` bounds predictions outside training.
    """

    def __init__(
        self,
        *,
        convolution: Callable[[int], nn.Module],
        virtual_node: bool = False,
        num_layers: int = 5,
        channels: int = 600,
        dropout: float = 0.0,
        pooling: Literal["sum", "mean"] = "sum",
        channels_out: int = 1,
        output_range: tuple[float, float] | None = None,
    ) -> None:
        super().__init__()
        if num_layers < 1 or pooling not in ("sum", "mean"):
            raise ValueError(f"expected at least one layer and pooling sum or mean, got {num_layers} and {pooling!r}")
        self.pooling, self.output_range = pooling, output_range
        self.atoms = CategoricalEncoder(tuple(ATOM_FEATURES.values()), channels)
        self.convolutions = nn.ModuleList(convolution(channels) for _ in range(num_layers))
        self.norms = nn.ModuleList(nn.BatchNorm1d(channels) for _ in range(num_layers))
        self.dropout = nn.Dropout(dropout)
        self.virtual = nn.Parameter(torch.zeros(channels)) if virtual_node else None
        updates = num_layers - 1 if virtual_node else 0
        self.virtual_updates = nn.ModuleList(VirtualNode(channels, dropout) for _ in range(updates))
        self.head = nn.Linear(channels, channels_out)

    def forward(self, batch: MoleculeBatch) -> Tensor:
        x = self.atoms(batch.atoms)
        virtual = None if self.virtual is None else self.virtual.expand(batch.num_graphs, -1)
        last = len(self.convolutions) - 1
        for step, (convolution, norm) in enumerate(zip(self.convolutions, self.norms, strict=True)):
            if virtual is not None:
                x = x + virtual[batch.graph]
            out = norm(convolution(x, batch))
            if step < last and virtual is not None:
                virtual = self.virtual_updates[step](virtual, x, batch.graph)
            x = self.dropout(out.relu() if step < last else out)
        return _bounded(self, self.head(self._pool(x, batch)), self.output_range)

    def _pool(self, x: Tensor, batch: MoleculeBatch) -> Tensor:
        pooled = x.new_zeros(batch.num_graphs, x.shape[1]).index_add(0, batch.graph, x)
        return pooled / batch.sizes[:, None] if self.pooling == "mean" else pooled


class FingerprintMLP(nn.Module):
    """A multilayer perceptron on the 2048 bits of a Morgan fingerprint."""

    def __init__(
        self,
        *,
        num_layers: int = 6,
        channels: int = 1600,
        dropout: float = 0.0,
        channels_out: int = 1,
        output_range: tuple[float, float] | None = None,
    ) -> None:
        super().__init__()
        widths = [FINGERPRINT_BITS, *[channels] * num_layers]
        layers: list[nn.Module] = []
        for width_in, width_out in pairwise(widths):
            layers += [nn.Linear(width_in, width_out), nn.BatchNorm1d(width_out), nn.ReLU(), nn.Dropout(dropout)]
        self.layers = nn.Sequential(*layers, nn.Linear(channels, channels_out))
        self.output_range = output_range

    def forward(self, batch: MoleculeBatch) -> Tensor:
        if batch.fingerprints is None:
            raise ValueError("the batch has no fingerprints: collate with CollateMolecules(fingerprints=True)")
        first = self.layers[0]
        assert isinstance(first, nn.Linear)
        return _bounded(self, self.layers(batch.fingerprints.to(first.weight.dtype)), self.output_range)


def _bounded(model: nn.Module, out: Tensor, bounds: tuple[float, float] | None) -> Tensor:
    return out if model.training or bounds is None else out.clamp(*bounds)
