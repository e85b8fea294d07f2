"""Models that give a logit to queried tuples of typed nodes: ours, equivariant linear layers, and those of other papers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from anyorder.algebra import EquivalenceClass, Sharing
from anyorder.experiments.hyperedges.baselines import DHNE, HyperSAGNN, MeanPairSimilarity, MinPairSimilarity
from anyorder.experiments.hyperedges.batches import Known
from anyorder.experiments.hyperedges.cooccurrence import cooccurrence_features
from anyorder.experiments.hyperedges.data import TypedHyperedges
from anyorder.experiments.hyperedges.typed_autoencoder import TypedAutoencoder
from anyorder.experiments.hyperedges.walks import Node2Vec, standardised
from anyorder.layers import EncoderLayer, EquivariantAttention, EquivariantLinear, Kernel, RandomFeatures
from anyorder.layouts import CompleteIndexSet, Features, SparseIndexSet
from anyorder.ops.dropout import Dropout
from anyorder.training.config import configurable
from anyorder.training.run import ModelConfig


def into_distinct_nodes(cls: EquivalenceClass) -> bool:
    """Whether a class writes to tuples of different nodes: 1 + k classes of those from order 1 to order k (Property 4)."""
    return cls.target.num_blocks == cls.order_out


class TupleNetwork(nn.Module):
    """Logits of queried tuples: all nodes are the input set, the queried tuples the output set.

    ``embed`` gives the node features, ``layers`` map nodes to nodes, ``last`` writes to the tuples and ``head`` reads them.
    A tuple holds its nodes in the order of their types, so each of its positions has weights of its own.
    """

    def __init__(self, embed: TypedAutoencoder, layers: nn.ModuleList, last: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.embed, self.layers, self.last, self.head = embed, layers, last, head

    def forward(self, tuples: Tensor) -> Tensor:
        """Logits (n,) of distinct tuples (n, k)."""
        return self.score(self.embed(), tuples)

    def with_auxiliary_loss(self, tuples: Tensor) -> tuple[Tensor, Tensor]:
        """Logits, and the reconstruction loss of all nodes, from one encoding."""
        embedded, loss = self.embed.with_loss()
        return self.score(embedded, tuples), loss

    def score(self, embedded: Tensor, tuples: Tensor) -> Tensor:
        """Logits (n,) of tuples from the features of all nodes (node, channel)."""
        return self._read(self._encode(embedded), tuples)

    def scorer(self) -> Callable[[Tensor], Tensor]:
        """What gives logits to tuples, with all nodes encoded once and for all."""
        rows = self._encode(self.embed()).rows
        return lambda tuples: self._read(Features.of_rows(_one_set(rows), rows), tuples)

    def _encode(self, embedded: Tensor) -> Features:
        x = Features.of_rows(_one_set(embedded), embedded)
        for layer in self.layers:
            x = layer(x)
        return x

    def _read(self, x: Features, tuples: Tensor) -> Tensor:
        target = SparseIndexSet._trusted(tuples, x.num_nodes, x.index.node_graph, 1)
        return self.head(self.last(x, target).rows).squeeze(-1)


def _one_set(rows: Tensor) -> CompleteIndexSet:
    """All nodes as one set. It keeps its plans to the tuples that are asked for, so each batch has its own."""
    return CompleteIndexSet(1, torch.tensor([len(rows)], device=rows.device))


class Activated(nn.Module):
    """An equivariant linear layer with a ReLU after it."""

    def __init__(self, layer: EquivariantLinear) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Features) -> Features:
        x = self.layer(x)
        return x.with_rows(x.rows.relu())


class IntoTuples(nn.Module):
    r"""An encoder layer from nodes to tuples of different nodes, each in one order only.

    .. math:: H = Attn_{1 \to k}(LN(X)), \quad Y = H + MLP(LN(H))

    No permutation of a tuple is in the index set, so the lightweight MLP of order k has one class: it acts on rows.
    """

    def __init__(
        self,
        *,
        order: int,
        channels: int,
        heads: int,
        head_channels: int,
        kernel: Kernel,
        dropout: float,
        sharing: Sharing = "none",
        output_rank: int | None = None,
    ) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(channels)
        self.attention = EquivariantAttention(
            order_in=1,
            order_out=order,
            channels=channels,
            heads=heads,
            head_channels=head_channels,
            kernel=kernel,
            dropout=dropout,
            classes=into_distinct_nodes,
            sharing=sharing,
            output_rank=output_rank,
        )
        wide, narrow = nn.Linear(channels, channels), nn.Linear(channels, channels)
        self.mlp = nn.Sequential(nn.LayerNorm(channels), wide, nn.GELU(), Dropout(dropout), narrow, Dropout(dropout))

    def forward(self, x: Features, target: SparseIndexSet) -> Features:
        h = self.attention(x.with_rows(self.norm(x.rows)), target)
        return h.with_rows(h.rows + self.mlp(h.rows))


def mlp_head(channels: int, hidden: int, dropout: float) -> nn.Sequential:
    """``hidden`` layers with ReLU and dropout, then one logit.

    >>> len(mlp_head(64, hidden=4, dropout=0.1))
    13
    """
    layers: list[nn.Module] = []
    for _ in range(hidden):
        layers += [nn.Linear(channels, channels), nn.ReLU(), Dropout(dropout)]
    return nn.Sequential(*layers, nn.Linear(channels, 1))


def _autoencoder(shapes: Known, channels: int, dropout: float = 0.25) -> TypedAutoencoder:
    features = cooccurrence_features(shapes.hyperedges())
    return TypedAutoencoder(features, channels=channels, dropout=dropout)


@configurable
@dataclass(frozen=True)
class TupleEncoder(ModelConfig):
    """Ours (S), Ours (S, phi): encoder layers from nodes to nodes, one from nodes to tuples, an MLP."""

    layers: int = 1
    channels: int = 64
    heads: int = 8
    head_channels: int = 16
    kernel: Kernel = field(default_factory=RandomFeatures)
    hidden: int = 4
    """Hidden layers of the MLP."""
    head_dropout: float = 0.1
    dropout: float = 0.0
    """Inside the encoder layers."""
    feature_dropout: float = 0.25
    sharing: Sharing = "none"
    output_rank: int | None = None
    """Both as in ``EncoderLayer``."""

    def build(self, shapes: Known) -> nn.Module:
        width: dict[str, Any] = {"channels": self.channels, "heads": self.heads, "head_channels": self.head_channels}
        lean = {"sharing": self.sharing, "output_rank": self.output_rank}
        given: dict[str, Any] = {"kernel": self.kernel, "dropout": self.dropout, **lean, **width}
        layers = (EncoderLayer(order_in=1, order_out=1, **given) for _ in range(self.layers))
        last = IntoTuples(order=len(shapes.sizes), **given)
        head = nn.Sequential(nn.LayerNorm(self.channels), *mlp_head(self.channels, self.hidden, self.head_dropout))
        embed = _autoencoder(shapes, self.channels, self.feature_dropout)
        return TupleNetwork(embed, nn.ModuleList(layers), last, head)


@configurable
@dataclass(frozen=True)
class TupleMLP(ModelConfig):
    """S2G+ (S): equivariant linear layers in place of encoder layers."""

    layers: int = 1
    channels: int = 64
    reduce: Literal["sum", "mean"] = "mean"
    """Eq. 1 has sums: over all nodes of a dataset they are thousands of times larger than a row, and nothing normalises."""
    hidden: int = 4
    head_dropout: float = 0.1

    def build(self, shapes: Known) -> nn.Module:
        width: dict[str, Any] = {"channels_in": self.channels, "channels_out": self.channels}
        layers = (
            Activated(EquivariantLinear(order_in=1, order_out=1, reduce=self.reduce, **width)) for _ in range(self.layers)
        )
        last = EquivariantLinear(
            order_in=1, order_out=len(shapes.sizes), classes=into_distinct_nodes, reduce=self.reduce, **width
        )
        head = mlp_head(self.channels, self.hidden, self.head_dropout)
        return TupleNetwork(_autoencoder(shapes, self.channels), nn.ModuleList(layers), last, head)


class WalkEmbedding(nn.Module):
    """Node embeddings by node2vec: made once, when training first asks for them, and then kept with the weights."""

    made: Tensor

    def __init__(self, data: TypedHyperedges, walks: Node2Vec, *, standardise: bool) -> None:
        super().__init__()
        self.data, self.walks, self.standardise = data, walks, standardise
        self.seed = int(torch.randint(2**31, ()))  # the same in all processes of a run
        self.weight = nn.Parameter(torch.zeros(data.num_nodes, walks.channels), requires_grad=standardise)
        self.register_buffer("made", torch.zeros((), dtype=torch.bool))

    def forward(self, nodes: Tensor) -> Tensor:
        if self.training and not bool(self.made):
            self._make()
        return functional.embedding(nodes, self.weight)

    @torch.no_grad()
    def _make(self) -> None:
        found = self.walks.embed(self.data, seed=self.seed)
        self.weight.copy_(standardised(found) if self.standardise else torch.from_numpy(found))
        self.made.fill_(True)


class WalkSimilarity(nn.Module):
    """Logits a s + b of similarities s of walk embeddings with a > 0: training calibrates them and keeps their order."""

    def __init__(self, embed: WalkEmbedding, kind: type[MeanPairSimilarity | MinPairSimilarity]) -> None:
        super().__init__()
        self.embed, self.kind = embed, kind
        self.scale, self.bias = nn.Parameter(torch.ones(())), nn.Parameter(torch.zeros(()))

    def forward(self, tuples: Tensor) -> Tensor:
        nodes, place = torch.unique(tuples, return_inverse=True)
        return functional.softplus(self.scale) * self.kind(self.embed(nodes))(place) + self.bias

    def with_auxiliary_loss(self, tuples: Tensor) -> tuple[Tensor, Tensor]:
        return self(tuples), self.bias.new_zeros(())


def _walk_embedding(shapes: Known, channels: int, epochs: int, *, standardise: bool) -> WalkEmbedding:
    data = shapes.hyperedges()
    return WalkEmbedding(data, Node2Vec(channels=channels, epochs=epochs), standardise=standardise)


@configurable
@dataclass(frozen=True)
class TupleSimilarity(ModelConfig):
    """node2vec-mean, node2vec-min: mean or least similarity over the pairs of a tuple."""

    pairs: Literal["mean", "min"] = "mean"
    channels: int = 64
    walk_epochs: int = 5

    def build(self, shapes: Known) -> nn.Module:
        embed = _walk_embedding(shapes, self.channels, self.walk_epochs, standardise=False)
        return WalkSimilarity(embed, MeanPairSimilarity if self.pairs == "mean" else MinPairSimilarity)


@configurable
@dataclass(frozen=True)
class TupleSAGNN(ModelConfig):
    """Hyper-SAGNN-E (features from autoencoders) and Hyper-SAGNN-W (embeddings from walks, trained further)."""

    features: Literal["autoencoder", "walks"] = "autoencoder"
    channels: int = 64
    heads: int = 8
    head_channels: int = 16
    attention_dropout: float = 0.3
    dropout: float = 0.4
    """Both as their authors trained it; the paper does not say."""
    walk_epochs: int = 5

    def build(self, shapes: Known) -> nn.Module:
        embed = (
            _autoencoder(shapes, self.channels)
            if self.features == "autoencoder"
            else _walk_embedding(shapes, self.channels, self.walk_epochs, standardise=True)
        )
        return HyperSAGNN(
            embed,
            channels=self.channels,
            heads=self.heads,
            head_channels=self.head_channels,
            attention_dropout=self.attention_dropout,
            dropout=self.dropout,
        )


@configurable
@dataclass(frozen=True)
class TupleDHNE(ModelConfig):
    """DHNE: embeddings of a tuple side by side, one tanh layer."""

    channels: int = 64

    def build(self, shapes: Known) -> nn.Module:
        return DHNE(_autoencoder(shapes, self.channels), order=len(shapes.sizes), channels=self.channels)
