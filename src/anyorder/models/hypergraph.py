"""Attention between nodes and unordered hyperedges of any size: overlaps through nodes, weights generated from the size."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from anyorder.layers.kernels import FeatureKernel, Kernel
from anyorder.layers.module import check_positive
from anyorder.layers.named_kernels import linear_kernel_of
from anyorder.layouts import Queries, Segments
from anyorder.layouts.incidence import IncidenceSet
from anyorder.ops.dropout import Dropout
from anyorder.ops.features import FeatureMap
from anyorder.ops.segment import segment_attention
from anyorder.saving import SavedModule


class IncidenceAttention(nn.Module):
    r"""Kernel attention of rows on one side of an incidence to those on the other, and to all rows of their own side.

    .. math:: Y_e = X_e w_0 + \sum_{v \in e} \alpha_{ev} X_v w_1 + \sum_{f} \beta_{ef} X_f w_2

    The three terms are the overlaps of a symmetric layer that reach any size in linear time: the same set, sets that share a
    node, and all sets.
    """

    directions: Tensor | None

    def __init__(self, *, channels: int, heads: int, head_channels: int, kernel: FeatureKernel, global_: bool) -> None:
        super().__init__()
        check_positive(channels=channels, heads=heads, head_channels=head_channels)
        self.heads, self.head_channels, self.kernel, self.global_ = heads, head_channels, kernel, global_
        width = heads * head_channels
        self.query = nn.Linear(channels, (2 if global_ else 1) * width)
        self.shared = nn.Linear(channels, 2 * width)
        self.all = nn.Linear(channels, 2 * width) if global_ else None
        self.output = nn.Linear((2 if global_ else 1) * width, channels)
        self.register_buffer("directions", kernel.draw(head_channels))

    def forward(self, rows: Tensor, others: Tensor, reads: Tensor, groups: Segments, each: Queries) -> Tensor:
        """``reads[n]`` is the row of ``others`` that incidence n reads; ``groups`` sorts the incidences by ``rows``."""
        features = self.kernel.feature_map(self.directions)
        query = self._heads(self.query(rows))
        key, value = self._heads(self.shared(others)).unbind(1)
        local, _ = segment_attention(
            query[:, :1].contiguous(),
            key.index_select(0, reads).unsqueeze(1),
            value.index_select(0, reads).unsqueeze(1),
            groups,
            each,
            features,
            True,
        )
        parts = [local.flatten(1)]
        if self.all is not None:
            key, value = self._heads(self.all(rows)).unbind(1)
            parts.append(_over_all(query[:, 1], key, value, features).flatten(1))
        return self.output(torch.cat(parts, 1))

    def _heads(self, rows: Tensor) -> Tensor:
        return rows.unflatten(1, (-1, self.heads, self.head_channels))


def _over_all(query: Tensor, key: Tensor, value: Tensor, features: FeatureMap) -> Tensor:
    """Attention of every row to every row, by one state per head."""
    phi_query, phi_key = features(query), features(key)
    state = torch.einsum("khm,khc->hmc", phi_key, value)
    norm = torch.einsum("qhm,hm->qh", phi_query, phi_key.sum(0))
    return torch.einsum("qhm,hmc->qhc", phi_query, state) / norm.clamp(min=torch.finfo(norm.dtype).tiny).unsqueeze(-1)


class SizeModulation(nn.Module):
    """Scale and shift of channels generated from the size of a hyperedge: parameters do not grow with the order."""

    def __init__(self, channels: int, hidden: int = 16) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Linear(2, hidden), nn.GELU(), nn.Linear(hidden, 2 * channels))
        for weight in self.network[2].parameters():
            nn.init.zeros_(weight)  # sizes make no difference until training finds one

    def forward(self, rows: Tensor, sizes: Tensor) -> Tensor:
        size = sizes.clamp(min=1).to(rows.dtype)
        scale, shift = self.network(torch.stack([size.log(), 1 / size], 1)).chunk(2, 1)
        return rows * (1 + scale) + shift


class HypergraphLayer(nn.Module):
    """Hyperedges gather from their nodes, then nodes from their hyperedges and from all nodes; an MLP after each."""

    def __init__(
        self, *, channels: int, heads: int, head_channels: int, dropout: float, kernel: FeatureKernel, global_: bool
    ) -> None:
        super().__init__()
        sizes = {"channels": channels, "heads": heads, "head_channels": head_channels}
        self.to_edges = IncidenceAttention(**sizes, kernel=kernel, global_=False)
        self.to_nodes = IncidenceAttention(**sizes, kernel=kernel, global_=global_)
        self.modulate = SizeModulation(channels)
        self.norms = nn.ModuleList(nn.LayerNorm(channels) for _ in range(6))
        self.edge_mlp, self.node_mlp = _mlp(channels, dropout), _mlp(channels, dropout)
        self.dropout = Dropout(dropout)

    def forward(self, nodes: Tensor, edges: Tensor, incidence: IncidenceSet) -> tuple[Tensor, Tensor]:
        n, i = self.norms, incidence
        edges = edges + self.dropout(self.to_edges(n[0](edges), n[1](nodes), i.node, i.by_edge, i.each_edge))
        edges = self.modulate(edges + self.edge_mlp(n[2](edges)), i.sizes)
        nodes = nodes + self.dropout(self.to_nodes(n[3](nodes), n[4](edges), i.edge, i.by_node, i.each_node))
        return nodes + self.node_mlp(n[5](nodes)), edges


def _mlp(channels: int, dropout: float) -> nn.Module:
    return nn.Sequential(
        nn.Linear(channels, channels), nn.GELU(), Dropout(dropout), nn.Linear(channels, channels), Dropout(dropout)
    )


class HypergraphEncoder(SavedModule):
    """Node features of a hypergraph with edges of any size, and perhaps features of its edges, to one row per node.

    >>> incidence = IncidenceSet.build(torch.tensor([0, 1, 1, 2]), torch.tensor([0, 0, 1, 1]), num_nodes=3, num_edges=2)
    >>> model = HypergraphEncoder(channels_in=4, channels=8, channels_out=2, layers=1, heads=2, head_channels=4)
    >>> model(torch.randn(3, 4), incidence).shape
    torch.Size([3, 2])

    Args:
        channels_in, channels, channels_out: widths of the input, the layers and the output.
        layers: number of layers.
        heads, head_channels: number of heads and width of each.
        dropout: share that is dropped in training.
        kernel: how queries and keys are compared, in linear time: a value or a name (default: ``Elu()``).
        global_: nodes attend to all nodes, too.
        edge_channels_in: width of features of edges; 0 where they have none.
    """

    def __init__(
        self,
        *,
        channels_in: int,
        channels: int,
        channels_out: int,
        layers: int,
        heads: int,
        head_channels: int,
        dropout: float = 0.0,
        kernel: Kernel | str | None = None,
        global_: bool = True,
        edge_channels_in: int = 0,
    ) -> None:
        super().__init__()
        check_positive(channels_in=channels_in, channels=channels, channels_out=channels_out, layers=layers)
        sizes = {"channels": channels, "heads": heads, "head_channels": head_channels}
        # Without a bias and brought to one scale: rows of many sparse features would drown in a bias.
        self.project = nn.Sequential(nn.Linear(channels_in, channels, bias=False), nn.LayerNorm(channels))
        self.project_edges = nn.Linear(edge_channels_in, channels) if edge_channels_in else None
        self.start = SizeModulation(channels)
        self.layers = nn.ModuleList(
            HypergraphLayer(**sizes, dropout=dropout, kernel=linear_kernel_of(kernel), global_=global_)
            for _ in range(layers)
        )
        self.norm, self.head = nn.LayerNorm(channels), nn.Linear(channels, channels_out)
        self.dropout = Dropout(dropout)

    def forward(self, features: Tensor, incidence: IncidenceSet, edge_features: Tensor | None = None) -> Tensor:
        if (edge_features is None) != (self.project_edges is None):
            channels = 0 if self.project_edges is None else self.project_edges.in_features
            given = "none" if edge_features is None else f"some of {edge_features.shape[1]} channels"
            raise ValueError(f"this model takes features of edges with {channels} channels, got {given}")
        nodes = self.dropout(self.project(self.dropout(features)))
        first = nodes.new_zeros(len(incidence.sizes), nodes.shape[1])
        if self.project_edges is not None:
            first = self.project_edges(edge_features)
        edges = self.start(first, incidence.sizes)
        for layer in self.layers:
            nodes, edges = layer(nodes, edges, incidence)
        return self.head(self.dropout(self.norm(nodes)))
