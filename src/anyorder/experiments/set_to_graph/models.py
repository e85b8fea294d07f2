"""Models from a set to a logit for every ordered pair of its points: ours and the baselines of Table 3, as values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from typing import Literal

import torch
from torch import Tensor, nn

from anyorder.algebra import Lightweight, Sharing, attention_program
from anyorder.algebra.program import Attention
from anyorder.experiments.set_to_graph.baselines.flat_mlp import FlatMLPConfig
from anyorder.experiments.set_to_graph.baselines.knn_gnn import KnnGraphNetworkConfig
from anyorder.experiments.set_to_graph.baselines.pairs import PairBasis, PairModel, PairModelConfig, Pooling, mlp
from anyorder.experiments.set_to_graph.baselines.s2g import SetToGraphConfig
from anyorder.experiments.set_to_graph.baselines.siamese import SiameseConfig, SiameseTripletConfig
from anyorder.experiments.set_to_graph.sets import SetBatch, SetSample, SetShapes, collate_sets
from anyorder.layers import Kernel, Softmax
from anyorder.layers.blocks import attended
from anyorder.layouts import CompleteIndexSet, Features, SparseIndexSet
from anyorder.layouts.memory import outside_inference_mode
from anyorder.models import Encoder
from anyorder.training.config import configurable
from anyorder.training.run import ModelConfig

MOST_PAIRS = 2**16
"""Pairs of points that are in memory at once where nothing is trained."""


@dataclass(frozen=True, eq=False)
class IndexedSets(SetBatch):
    """Sets of different sizes with the index set of their points, which keeps what layers work out from it."""

    nodes: CompleteIndexSet | None = None


@dataclass(frozen=True)
class CollateIndexed:
    """Lays sets end to end; where their sizes differ, works out what encoder layers need to know of them."""

    attention: Attention
    sharing: Sharing = "none"
    direct: bool = True

    def __call__(self, samples: Sequence[SetSample]) -> IndexedSets:
        sets = collate_sets(samples)
        nodes = None if sets.same_size else CompleteIndexSet(1, sets.sizes)
        if nodes is not None:
            self._prepare(nodes)
        return IndexedSets(sets.points, sets.sizes, sets.targets, sets.labels, nodes)

    def _prepare(self, nodes: CompleteIndexSet) -> None:
        for order in (1, 2):
            target = nodes.with_order(order)
            pools = attended(1, order, "all", self.direct)
            program = attention_program(1, order, pools, (self.attention, self.attention), order == 1, self.sharing)
            nodes.known(program, target)


@lru_cache(maxsize=4)
def _equal_sets(size: int, number: int, device: torch.device) -> CompleteIndexSet:
    """Batches of equally many sets of one size share an index set, so that its plans are worked out once."""
    with outside_inference_mode():
        return CompleteIndexSet(1, torch.full((number,), size, device=device))


def _tiles(size: int, side: int) -> Iterator[Tensor]:
    """Pairs of 0..size-1 in groups of which each has what the MLP of a layer reads for a pair: (j, i), (i, i) and (j, j)."""
    blocks = torch.arange(size).split(side)
    for number, rows in enumerate(blocks):
        yield torch.cartesian_prod(rows, rows)
        for columns in blocks[number + 1 :]:
            across, both = torch.cartesian_prod(rows, columns), torch.cat([rows, columns])
            yield torch.cat([across, across.flip(1), torch.stack([both, both], 1)])


class PairEncoder(PairModel):
    r"""Encoder layers from points to points, one from points to pairs, and an MLP on each pair.

    .. math:: E_{ij} = \mathrm{MLP}(\mathrm{Enc}_{1 \to 2} \circ \mathrm{Enc}_{1 \to 1}^{L}(X))_{ij}

    With ``own_diagonal`` a second MLP answers for the pairs (i, i).
    """

    def __init__(self, encoder: Encoder, *, head: Sequence[int], own_diagonal: bool = False) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = mlp((encoder.channels_out, *head, 1))
        self.diagonal_head = mlp((encoder.channels_out, *head, 1)) if own_diagonal else None

    def forward(self, batch: SetBatch) -> Tensor:
        """The logits (pairs,)."""
        alone = batch.num_sets == 1 and not torch.is_grad_enabled() and not torch.compiler.is_exporting()
        if alone and batch.num_pairs > MOST_PAIRS:
            return self._in_blocks(batch)
        nodes = self._nodes(batch)
        pairs = self.encoder(Features.of_rows(nodes, batch.points), target=nodes.with_order(2))
        logits: Tensor = self.head(pairs.rows)
        if self.diagonal_head is not None:
            logits = logits.index_copy(0, batch.diagonal, self.diagonal_head(pairs.rows[batch.diagonal]))
        return logits.squeeze(1)

    def _in_blocks(self, batch: SetBatch) -> Tensor:
        """The same for one large set, some pairs after the others: what is kept of a pair is its logit."""
        size, encoder = batch.max_size, self.encoder
        x = encoder.project(Features.of_rows(CompleteIndexSet(1, batch.sizes), batch.points))
        *before, last = encoder.layers
        for layer in before:
            x = layer(x)
        logits = batch.points.new_zeros(size * size)
        for pairs in _tiles(size, max(1, int(MOST_PAIRS**0.5))):
            tuples = pairs.to(batch.points.device)
            held = encoder.head(encoder.norm(last(x, SparseIndexSet(tuples, num_nodes=size)).rows))
            found = self.head(held)
            if self.diagonal_head is not None:
                own = (tuples[:, 0] == tuples[:, 1]).nonzero().flatten()
                found = found.index_copy(0, own, self.diagonal_head(held[own]))
            logits[tuples[:, 0] * size + tuples[:, 1]] = found.squeeze(1)
        return logits

    @staticmethod
    def _nodes(batch: SetBatch) -> CompleteIndexSet:
        if isinstance(batch, IndexedSets) and batch.nodes is not None:
            return batch.nodes
        if batch.same_size:
            return _equal_sets(batch.max_size, batch.num_sets, batch.sizes.device)
        return CompleteIndexSet(1, batch.sizes)


@dataclass(frozen=True)
class PairModelSettings(ModelConfig):
    """A model of sets; ``shapes`` say how many ``channels`` a point has."""

    def collate(self) -> Callable[[Sequence[SetSample]], SetBatch]:
        """What makes its batches."""
        return collate_sets


@configurable
@dataclass(frozen=True)
class SetEncoder(PairModelSettings):
    """Ours (D) and Ours (D, phi): Enc_1->1 x layers, Enc_1->2, MLP."""

    layers: int = 5
    channels: int = 256
    heads: int = 4
    head_channels: int = 64
    head: tuple[int, ...] = (256, 256)
    kernel: Kernel = field(default_factory=Softmax)
    coupling: Literal["relaxed", "exact"] | None = None
    dropout: float = 0.1
    own_diagonal: bool = False
    sharing: Sharing = "none"
    output_rank: int | None = None
    mlp_classes: Lightweight = "pointwise"
    direct: bool = True
    channels_hidden: int | None = None

    def build(self, shapes: SetShapes) -> nn.Module:
        encoder = Encoder(
            order_in=1,
            orders=(1,) * self.layers + (2,),
            channels_in=shapes.channels,
            channels=self.channels,
            channels_out=None,
            heads=self.heads,
            head_channels=self.head_channels,
            kernel=self.kernel,
            coupling=self.coupling,
            dropout=self.dropout,
            sharing=self.sharing,
            output_rank=self.output_rank,
            mlp_classes=self.mlp_classes,
            direct=self.direct,
            channels_hidden=self.channels_hidden,
        )
        return PairEncoder(encoder, head=self.head, own_diagonal=self.own_diagonal)

    def collate(self) -> Callable[[Sequence[SetSample]], SetBatch]:
        return CollateIndexed(self.kernel.attention(self.coupling or "relaxed"), self.sharing, self.direct)


@configurable
@dataclass(frozen=True)
class DeepSetPairs(PairModelSettings):
    """S2G and S2G+."""

    widths: tuple[int, ...]
    head: tuple[int, ...]
    basis: Literal["both_ends", "full"] = "both_ends"
    pooling: Literal["mean", "sum"] = "mean"
    attention: bool = False
    own_diagonal: bool = True

    def build(self, shapes: SetShapes) -> nn.Module:
        basis, pooling = PairBasis[self.basis.upper()], Pooling[self.pooling.upper()]
        settings = {**vars(self), "basis": basis, "pooling": pooling}
        return SetToGraphConfig(channels_in=shapes.channels, **settings).build()


@configurable
@dataclass(frozen=True)
class SiamesePairs(PairModelSettings):
    """SIAM."""

    widths: tuple[int, ...]
    head: tuple[int, ...]
    batch_norm: bool = True

    def build(self, shapes: SetShapes) -> nn.Module:
        return SiameseConfig(channels_in=shapes.channels, **vars(self)).build()


@configurable
@dataclass(frozen=True)
class SiameseTriplets(PairModelSettings):
    """SIAM-3, which is trained on triplets."""

    widths: tuple[int, ...]
    batch_norm: bool = False
    margin: float = 2.0
    num_triplets: int = 200

    def build(self, shapes: SetShapes) -> nn.Module:
        return SiameseTripletConfig(channels_in=shapes.channels, **vars(self)).build()


@configurable
@dataclass(frozen=True)
class NearestNeighbourGNN(PairModelSettings):
    """GNN k: graph convolutions on the k nearest neighbours."""

    widths: tuple[int, ...]
    neighbours: int

    def build(self, shapes: SetShapes) -> nn.Module:
        return KnnGraphNetworkConfig(channels_in=shapes.channels, **vars(self)).build()


@configurable
@dataclass(frozen=True)
class PaddedMLP(PairModelSettings):
    """MLP: the set, padded with zeros to ``max_points``, as one vector."""

    widths: tuple[int, ...]
    max_points: int

    def build(self, shapes: SetShapes) -> nn.Module:
        return FlatMLPConfig(channels_in=shapes.channels, **vars(self)).build()


_SETTINGS: dict[type, type[ModelConfig]] = {
    SetToGraphConfig: DeepSetPairs,
    SiameseConfig: SiamesePairs,
    SiameseTripletConfig: SiameseTriplets,
    KnnGraphNetworkConfig: NearestNeighbourGNN,
    FlatMLPConfig: PaddedMLP,
}


def as_settings(row: PairModelConfig) -> ModelConfig:
    """A baseline row as the configuration of a run: plain values, and channels that follow from the data.

    >>> as_settings(KnnGraphNetworkConfig(channels_in=2, widths=(8, 4), neighbours=5))
    NearestNeighbourGNN(widths=(8, 4), neighbours=5)
    """
    plain = {name: value.name.lower() if isinstance(value, Enum) else value for name, value in vars(row).items()}
    del plain["channels_in"]
    return _SETTINGS[type(row)](**plain)


def narrowed(model: ModelConfig, share: float) -> ModelConfig:
    """A baseline with every layer a share as wide.

    >>> narrowed(NearestNeighbourGNN(widths=(1000, 1500), neighbours=5), 0.25).widths
    (250, 375)
    """
    lists = {name: value for name, value in vars(model).items() if name in ("widths", "head")}
    return replace(model, **{name: tuple(max(1, round(w * share)) for w in value) for name, value in lists.items()})
