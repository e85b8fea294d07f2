"""GIN and PPGN on adjacency matrices, written from their papers."""

from __future__ import annotations

import torch
from torch import Tensor, nn


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

    def __init__(self, *, blocks: int, channels: int, channels_out: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(MatrixBlock(channels if n else 2, channels) for n in range(blocks))
        self.heads = nn.ModuleList(nn.Linear(2 * channels, channels_out) for _ in range(blocks))

    def forward(self, x: Tensor) -> Tensor:
        """``x``: (graph, node, node, 2), adjacency and identity."""
        inside = x[..., 1].diagonal(dim1=1, dim2=2)
        there = (inside.unsqueeze(1) * inside.unsqueeze(2)).unsqueeze(-1)
        rows, answers = x, []
        for block, head in zip(self.blocks, self.heads, strict=True):
            rows = block(rows, there)
            diagonal = rows.diagonal(dim1=1, dim2=2).sum(-1)
            answers.append(head(torch.cat([diagonal, rows.sum((1, 2)) - diagonal], 1)))
        return torch.stack(answers).sum(0)


class MatrixBlock(nn.Module):
    """Two MLPs on each entry whose results are multiplied as matrices, and the input beside the product."""

    def __init__(self, channels_in: int, channels: int) -> None:
        super().__init__()
        self.left, self.right = _mlp(channels_in, channels), _mlp(channels_in, channels)
        self.join = nn.Linear(channels_in + channels, channels)

    def forward(self, rows: Tensor, there: Tensor) -> Tensor:
        left, right = (torch.relu(side(rows)) * there for side in (self.left, self.right))
        size = rows.shape[1]
        product = torch.einsum("bikc,bkjc->bijc", left, right) / size
        return torch.relu(self.join(torch.cat([rows, product], -1))) * there
