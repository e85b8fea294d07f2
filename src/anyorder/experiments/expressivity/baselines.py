"""GIN and PPGN on adjacency matrices, written from their papers."""

from __future__ import annotations

import torch
from torch import Tensor, nn

NODES, NEIGHBOURS = 10, 5
"""About how many nodes a graph has, and a node neighbours: sums are divided by them, or training would start far off.

The same number for all graphs, so that sums still count, and so that a graph's answer is the same in every batch.
"""


def _mlp(channels_in: int, channels: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(channels_in, channels), nn.ReLU(), nn.Linear(channels, channels))


def _norm(channels: int, *, batch: bool) -> nn.Module:
    """Batch norm where models are trained on many graphs; none on a pair, where it would mix the two."""
    return nn.BatchNorm1d(channels) if batch else nn.Identity()


def _normalise(norm: nn.Module, rows: Tensor, there: Tensor) -> Tensor:
    """Batch norm over what is there of padded rows, zero elsewhere."""
    if isinstance(norm, nn.Identity):
        return rows
    inside = there[..., 0] > 0
    return torch.zeros_like(rows).masked_scatter(inside.unsqueeze(-1), norm(rows[inside]))


class GraphIsomorphismNetwork(nn.Module):
    r"""GIN (Xu et al. 2019) on graphs without node features.

    .. math:: h_v \leftarrow MLP((1 + \epsilon) h_v + \sum_{u \in N(v)} h_u)

    The output reads the nodes after each layer (jumping knowledge): their sums, or each of them where ``per_node``.
    """

    def __init__(self, *, layers: int, channels: int, channels_out: int, per_node: bool = False) -> None:
        super().__init__()
        self.per_node = per_node
        self.updates = nn.ModuleList(_mlp(channels if n else 1, channels) for n in range(layers))
        self.norms = nn.ModuleList(_norm(channels, batch=per_node) for _ in range(layers))
        self.epsilon = nn.Parameter(torch.zeros(layers))
        self.head = nn.Linear(layers * channels, channels_out)

    def forward(self, x: Tensor) -> Tensor:
        """``x``: (graph, node, node, 2), adjacency and identity."""
        adjacency, there = x[..., 0], x[..., 1].diagonal(dim1=1, dim2=2).unsqueeze(-1)
        rows, found = there, []
        for update, norm, epsilon in zip(self.updates, self.norms, self.epsilon, strict=True):
            made = update((1 + epsilon) * rows + adjacency @ rows / NEIGHBOURS)
            rows = torch.relu(_normalise(norm, made, there)) * there
            found.append(rows)
        every = torch.cat(found, 2)
        return self.head(every[there[..., 0] > 0] if self.per_node else every.sum(1))


class ProvablyPowerfulNetwork(nn.Module):
    """PPGN (Maron et al. 2019, Sec. 6): blocks that multiply matrices channel by channel, sums at the end.

    The sums are over the diagonal and the other entries, or over those in the row of a node where ``per_node``.
    """

    def __init__(
        self, *, blocks: int, channels: int, channels_out: int, frequency: float | None = None, per_node: bool = False
    ) -> None:
        super().__init__()
        self.per_node = per_node
        self.blocks = nn.ModuleList(
            MatrixBlock(channels if n else 2, channels, frequency, batch_norm=per_node) for n in range(blocks)
        )
        self.heads = nn.ModuleList(nn.Linear(2 * channels, channels_out) for _ in range(blocks))

    def forward(self, x: Tensor) -> Tensor:
        """``x``: (graph, node, node, 2), adjacency and identity."""
        inside = x[..., 1].diagonal(dim1=1, dim2=2)
        there = (inside.unsqueeze(1) * inside.unsqueeze(2)).unsqueeze(-1)
        rows, answers = x, []
        for block, head in zip(self.blocks, self.heads, strict=True):
            rows = block(rows, there)
            own = rows.diagonal(dim1=1, dim2=2).transpose(1, 2)
            read = torch.cat([own, (rows.sum(2) - own) / NODES], 2)
            answers.append(head(read[inside > 0] if self.per_node else read.sum(1) / NODES))
        return torch.stack(answers).sum(0)


class MatrixBlock(nn.Module):
    """Two MLPs on each entry whose results are multiplied as matrices, and the input beside the product; then a ReLU.

    With ``frequency`` a sine of standardised channels, for random weights.
    """

    def __init__(self, channels_in: int, channels: int, frequency: float | None, *, batch_norm: bool) -> None:
        super().__init__()
        self.frequency, self.norm = frequency, _norm(channels, batch=batch_norm)
        self.left, self.right = _mlp(channels_in, channels), _mlp(channels_in, channels)
        self.join = nn.Linear(channels_in + channels, channels)

    def forward(self, rows: Tensor, there: Tensor) -> Tensor:
        left, right = (self._activate(side(rows), there) for side in (self.left, self.right))
        product = torch.einsum("bikc,bkjc->bijc", left, right) / NODES
        return self._activate(_normalise(self.norm, self.join(torch.cat([rows, product], -1)), there), there)

    def _activate(self, rows: Tensor, there: Tensor) -> Tensor:
        if self.frequency is None:
            return torch.relu(rows) * there
        return torch.sin(self.frequency * _standardise(rows, there)) * there


def _standardise(rows: Tensor, there: Tensor) -> Tensor:
    """Entries by the mean and deviation of their matrix; a deviation that is rounding, 1e-6 of the mean, stays small."""
    count = there.sum((1, 2), keepdim=True)
    mean = (rows * there).sum((1, 2), keepdim=True) / count
    deviation = (((rows - mean) ** 2 * there).sum((1, 2), keepdim=True) / count + 1e-24).sqrt()
    return (rows - mean) / (deviation + 1e-6 * mean.abs())
