"""GIN and PPGN on adjacency matrices, written from their papers."""

from __future__ import annotations

import torch
from torch import Tensor, nn

NODES = 10
"""About how many nodes a graph has: sums over pairs of nodes are divided by its square, or training would start far off."""


def _mlp(channels_in: int, channels: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(channels_in, channels), nn.ReLU(), nn.Linear(channels, channels))


class GraphIsomorphismNetwork(nn.Module):
    r"""GIN (Xu et al. 2019) on graphs without node features.

    .. math:: h_v \leftarrow MLP((1 + \epsilon) h_v + \sum_{u \in N(v)} h_u)

    The output reads the sums over nodes after each layer (jumping knowledge).
    """

    def __init__(self, *, layers: int, channels: int, channels_out: int) -> None:
        super().__init__()
        self.updates = nn.ModuleList(_mlp(channels if n else 1, channels) for n in range(layers))
        self.epsilon = nn.Parameter(torch.zeros(layers))
        self.head = nn.Linear(layers * channels, channels_out)

    def forward(self, x: Tensor) -> Tensor:
        """``x``: (graph, node, node, 2), adjacency and identity."""
        adjacency, there = x[..., 0], x[..., 1].diagonal(dim1=1, dim2=2).unsqueeze(-1)
        rows, sums = there, []
        for update, epsilon in zip(self.updates, self.epsilon, strict=True):
            rows = torch.relu(update((1 + epsilon) * rows + adjacency @ rows)) * there
            sums.append(rows.sum(1))
        return self.head(torch.cat(sums, 1))


class ProvablyPowerfulNetwork(nn.Module):
    """PPGN (Maron et al. 2019, Sec. 6): blocks that multiply matrices channel by channel, sums at the end."""

    def __init__(self, *, blocks: int, channels: int, channels_out: int, frequency: float | None = None) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(MatrixBlock(channels if n else 2, channels, frequency) for n in range(blocks))
        self.heads = nn.ModuleList(nn.Linear(2 * channels, channels_out) for _ in range(blocks))

    def forward(self, x: Tensor) -> Tensor:
        """``x``: (graph, node, node, 2), adjacency and identity."""
        inside = x[..., 1].diagonal(dim1=1, dim2=2)
        there = (inside.unsqueeze(1) * inside.unsqueeze(2)).unsqueeze(-1)
        rows, answers = x, []
        for block, head in zip(self.blocks, self.heads, strict=True):
            rows = block(rows, there)
            diagonal = rows.diagonal(dim1=1, dim2=2).sum(-1)
            rest = rows.sum((1, 2)) - diagonal
            answers.append(head(torch.cat([diagonal / NODES, rest / NODES**2], 1)))
        return torch.stack(answers).sum(0)


class MatrixBlock(nn.Module):
    """Two MLPs on each entry whose results are multiplied as matrices, and the input beside the product; then a ReLU.

    With ``frequency`` a sine of standardised channels, for random weights.
    """

    def __init__(self, channels_in: int, channels: int, frequency: float | None) -> None:
        super().__init__()
        self.frequency = frequency
        self.left, self.right = _mlp(channels_in, channels), _mlp(channels_in, channels)
        self.join = nn.Linear(channels_in + channels, channels)

    def forward(self, rows: Tensor, there: Tensor) -> Tensor:
        left, right = (self._activate(side(rows), there) for side in (self.left, self.right))
        product = torch.einsum("bikc,bkjc->bijc", left, right) / rows.shape[1]
        return self._activate(self.join(torch.cat([rows, product], -1)), there)

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
