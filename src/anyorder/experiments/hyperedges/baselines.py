"""Hyperedge predictors of other papers: Hyper-SAGNN, DHNE and similarities of walk embeddings.

Each maps tuples of node ids (n, k), one column per node type, to n logits.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from anyorder.experiments.hyperedges.typed_autoencoder import TypedAutoencoder


class _EmbeddedScorer(nn.Module):
    """Logits of tuples from embeddings of their nodes; each node of a batch is embedded once."""

    def __init__(self, embed: nn.Module) -> None:
        super().__init__()
        self.embed = embed

    def score(self, embeddings: Tensor, place: Tensor) -> Tensor:
        """Logits (n,) of tuples whose nodes (n, k) are given as places among the embeddings (nodes, channels)."""
        raise NotImplementedError

    def forward(self, tuples: Tensor) -> Tensor:
        """Logits (n,) of tuples (n, k)."""
        nodes, place = torch.unique(tuples, return_inverse=True)
        return self.score(self.embed(nodes), place)

    def auxiliary_loss(self, nodes: Tensor | None = None) -> Tensor:
        """The reconstruction loss of ``nodes``, or of all; 0 where embeddings are not reconstructed."""
        if isinstance(self.embed, TypedAutoencoder):
            return self.embed.reconstruction_loss(nodes)
        return next(self.parameters()).new_zeros(())

    def with_auxiliary_loss(self, tuples: Tensor) -> tuple[Tensor, Tensor]:
        """Logits, and the auxiliary loss of the nodes that occur, from one encoding."""
        nodes, place = torch.unique(tuples, return_inverse=True)
        if isinstance(self.embed, TypedAutoencoder):
            embeddings, loss = self.embed.with_loss(nodes)
        else:
            embeddings, loss = self.embed(nodes), self.auxiliary_loss()
        return self.score(embeddings, place), loss


class HyperSAGNN(_EmbeddedScorer):
    r"""Self-attention over the nodes of a tuple against a static view of each of them.

    .. math:: p = \frac1k \sum_i \sigma\big(o\big((\mathrm{LN}(d_i) - \mathrm{LN}(s_i))^2\big)\big)

    d_i is node i as the other nodes of the tuple see it (attention with the diagonal masked), s_i as it is alone.
    With a ``TypedAutoencoder`` as ``embed`` this is Hyper-SAGNN-E, with walk embeddings Hyper-SAGNN-W.
    """

    def __init__(
        self,
        embed: nn.Module,
        *,
        channels: int = 64,
        heads: int = 8,
        head_channels: int = 16,
        attention_dropout: float = 0.3,
        dropout: float = 0.4,
    ) -> None:
        super().__init__(embed)
        self.heads = heads
        self.norm = nn.LayerNorm(channels)
        self.project = nn.Linear(channels, 3 * heads * head_channels, bias=False)
        self.attention_dropout = nn.Dropout(attention_dropout)
        self.merge = nn.Linear(heads * head_channels, channels)
        self.dynamic = _position_wise(channels, dropout)
        self.static = _position_wise(channels, dropout)
        self.dynamic_norm = nn.LayerNorm(channels)
        self.static_norm = nn.LayerNorm(channels)
        self.output = nn.Linear(channels, 1)

    def score(self, embeddings: Tensor, place: Tensor) -> Tensor:
        if place.shape[1] < 2:
            raise ValueError(f"a tuple needs at least two nodes to attend to each other, got {place.shape[1]}")
        normed = self.norm(embeddings)
        dynamic = self.dynamic_norm(self.dynamic(self._attend(self.project(normed)[place])))
        static = self.static_norm(self.static(normed))[place]
        return logit_of_mean(self.output((dynamic - static).square()).squeeze(-1))

    def _attend(self, projected: Tensor) -> Tensor:
        query, key, value = projected.unflatten(-1, (3, self.heads, -1)).unbind(2)
        # Tuples are short: elementwise products over all pairs beat thousands of tiny matrix products.
        scores = (query[:, :, None] * key[:, None]).sum(-1) / math.sqrt(query.shape[-1])
        itself = torch.eye(query.shape[1], dtype=torch.bool, device=query.device)
        weights = self.attention_dropout(scores.masked_fill(itself[:, :, None], -torch.inf).softmax(2))
        return self.merge((weights[..., None] * value[:, None]).sum(2).flatten(2))


def _position_wise(channels: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(nn.Linear(channels, channels), nn.Tanh(), nn.Dropout(dropout), nn.Linear(channels, channels))


def logit_of_mean(logits: Tensor) -> Tensor:
    r"""The logit of the mean of probabilities given as logits, :math:`\mathrm{logit}(\frac1k \sum_i \sigma(z_i))`.

    >>> logit_of_mean(torch.tensor([[3.0, -3.0], [2.0, 2.0]])).round(decimals=5).tolist()
    [0.0, 2.0]
    """
    return functional.logsigmoid(logits).logsumexp(-1) - functional.logsigmoid(-logits).logsumexp(-1)


class DHNE(_EmbeddedScorer):
    r"""The embeddings of a tuple side by side, one tanh layer, one logit: :math:`w^\top \tanh(W [y_1, ..., y_k] + b) + c`.

    ``embed`` is a ``TypedAutoencoder``; the order of a tuple's columns, one per type, matters.
    """

    def __init__(self, embed: nn.Module, *, order: int, channels: int = 64) -> None:
        super().__init__(embed)
        self.order = order
        self.joint = nn.Linear(order * channels, order * channels)
        self.output = nn.Linear(order * channels, 1)

    def score(self, embeddings: Tensor, place: Tensor) -> Tensor:
        if place.shape[1] != self.order:
            raise ValueError(f"expected tuples of {self.order} nodes, got {place.shape[1]}")
        return self.output(torch.tanh(self.joint(embeddings[place].flatten(1)))).squeeze(-1)


class _PairSimilarity(nn.Module):
    """Cosines of all pairs of nodes of a tuple; there is nothing to train."""

    unit: Tensor

    def __init__(self, embeddings: Tensor) -> None:
        super().__init__()
        self.register_buffer("unit", functional.normalize(embeddings, dim=-1))

    def pairs(self, tuples: Tensor) -> Tensor:
        """Cosines (n, k (k - 1) / 2)."""
        nodes = self.unit[tuples]
        first, second = torch.triu_indices(tuples.shape[1], tuples.shape[1], offset=1)
        return torch.einsum("nkc,nkc->nk", nodes[:, first], nodes[:, second])


class MeanPairSimilarity(_PairSimilarity):
    """The mean cosine over the pairs of a tuple.

    >>> MeanPairSimilarity(torch.eye(2))(torch.tensor([[0, 0], [0, 1]])).tolist()
    [1.0, 0.0]
    """

    def forward(self, tuples: Tensor) -> Tensor:
        return self.pairs(tuples).mean(-1)


class MinPairSimilarity(_PairSimilarity):
    """The least cosine over the pairs of a tuple."""

    def forward(self, tuples: Tensor) -> Tensor:
        return self.pairs(tuples).amin(-1)
