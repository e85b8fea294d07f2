"""Attention on hypergraphs that moves rows and leaves them as they are: few weights, for few labels."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from anyorder.layers.checks import check_positive
from anyorder.layers.kernels import Elu, FeatureMap, RandomFeatures
from anyorder.layouts import Queries, Segments
from anyorder.layouts.incidence import IncidenceSet
from anyorder.layouts.neighbours import Neighbours
from anyorder.ops.dropout import Dropout
from anyorder.ops.segment import segment_attention


class Gathering(nn.Module):
    r"""Rows gather others along incidences, :math:`y_e = \sum_{v \in e} \alpha_{ev} x_v`; a head has a part of the channels.

    The weights start equal: keys are all the same until training tells them apart.
    """

    directions: Tensor | None

    def __init__(self, *, channels: int, heads: int, kernel: Elu | RandomFeatures) -> None:
        super().__init__()
        self.heads, self.kernel = heads, kernel
        self.norm = nn.LayerNorm(channels, elementwise_affine=False)
        self.query, self.key = nn.Linear(channels, channels), nn.Linear(channels, channels)
        for weight in self.key.parameters():
            nn.init.zeros_(weight)
        self.register_buffer("directions", kernel.draw(channels // heads))

    def forward(self, asks: Tensor, rows: Tensor, reads: Tensor, groups: Segments, each: Queries) -> Tensor:
        """``reads[n]`` is the row that incidence n reads; ``groups`` sorts the incidences by the rows of ``asks``."""
        query, key = self.query(self.norm(asks)), self.key(self.norm(rows))
        key, value = (self._heads(x.index_select(0, reads)) for x in (key, rows))
        features = FeatureMap.of(self.kernel, self.directions)
        return segment_attention(self._heads(query), key, value, groups, each, features, True)[0].flatten(1)

    def _heads(self, rows: Tensor) -> Tensor:
        return rows.unflatten(1, (1, self.heads, -1))


class Propagation(nn.Module):
    r"""A node keeps a share of its row and takes shares from its hyperedges and from the nodes like it.

    .. math:: y_v = a_0 x_v + a_1 \sum_{e \ni v} \alpha_{ve} \sum_{u \in e} \alpha_{eu} x_u + a_2 \sum_u s_{uv} x_u

    The shares are learned and sum to 1; ``keep`` is a_0 at the start. A node in no hyperedge divides a_1 among the others.
    """

    def __init__(self, *, channels: int, heads: int, kernel: Elu | RandomFeatures, keep: float) -> None:
        super().__init__()
        if not 0 < keep < 1:
            raise ValueError(f"keep must lie between 0 and 1, got {keep}")
        sizes = {"channels": channels, "heads": heads}
        self.to_edges, self.to_nodes = Gathering(**sizes, kernel=kernel), Gathering(**sizes, kernel=kernel)
        self.shares = nn.Parameter(torch.tensor([keep, 0.75 * (1 - keep), 0.25 * (1 - keep)]).log())

    def forward(self, nodes: Tensor, incidence: IncidenceSet, alike: Neighbours | None) -> Tensor:
        i = incidence
        sums = nodes.new_zeros(len(i.sizes), nodes.shape[1]).index_add(0, i.edge, nodes.index_select(0, i.node))
        means = sums / i.sizes.clamp(min=1).unsqueeze(1).to(sums.dtype)
        edges = self.to_edges(means, nodes, i.node, i.by_edge, i.each_edge)
        parts = [nodes, self.to_nodes(nodes, edges, i.edge, i.by_node, i.each_node)]
        if alike is not None:
            parts.append(alike(nodes))
        alone = torch.zeros(len(nodes), len(parts), dtype=torch.bool, device=nodes.device)
        alone[:, 1] = i.by_node.pointer.diff() == 0
        shares = self.shares[: len(parts)].expand(alone.shape).masked_fill(alone, -torch.inf).softmax(1)
        return torch.stack([share.unsqueeze(1) * part for share, part in zip(shares.unbind(1), parts, strict=True)]).sum(0)


class PropagationEncoder(nn.Module):
    """Node features of a hypergraph to one row per node.

    As many linear maps as propagations, or two: the last one, to the output, is after the last propagation, the others are
    before one, so that two layers have no more weights than a perceptron of two layers and the attention.

    >>> incidence = IncidenceSet.build(torch.tensor([0, 1, 1, 2]), torch.tensor([0, 0, 1, 1]), num_nodes=3, num_edges=2)
    >>> model = PropagationEncoder(channels_in=4, channels=8, channels_out=2, layers=2, heads=2)
    >>> model(torch.randn(3, 4), incidence).shape
    torch.Size([3, 2])
    """

    def __init__(
        self,
        *,
        channels_in: int,
        channels: int,
        channels_out: int,
        layers: int,
        heads: int,
        dropout: float = 0.0,
        keep: float = 0.8,
        kernel: Elu | RandomFeatures | None = None,
    ) -> None:
        super().__init__()
        check_positive(channels_in=channels_in, channels=channels, channels_out=channels_out, layers=layers, heads=heads)
        if channels % heads:
            raise ValueError(f"channels must be a multiple of the heads, got {channels} channels and {heads} heads")
        widths = [channels_in, *[channels] * max(1, layers - 1), channels_out]
        self.weights = nn.ParameterList(nn.init.xavier_uniform_(torch.empty(a, b)) for a, b in pairwise(widths))
        self.biases = nn.ParameterList(torch.zeros(width) for width in [*[channels] * (layers - 1), channels_out])
        self.layers = nn.ModuleList(
            Propagation(channels=channels, heads=heads, kernel=kernel or Elu(), keep=keep) for _ in range(layers)
        )
        self.dropout = Dropout(dropout)

    def forward(self, features: Tensor, incidence: IncidenceSet, alike: Neighbours | None = None) -> Tensor:
        *between, last = self.layers
        first, *others, head = self.weights
        rows = self.dropout(features) @ first
        for layer, weight, bias in zip(between, [*others, None], self.biases, strict=False):
            rows = self.dropout((layer(rows, incidence, alike) + bias).relu())
            rows = rows if weight is None else rows @ weight
        return last(rows, incidence, alike) @ head + self.biases[-1]
