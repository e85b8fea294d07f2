"""A batch of small graphs like molecules: our model beside GIN of the same depth and width on the same batch.

    OMP_NUM_THREADS=1 python benchmarks/molecules_like.py

256 graphs of 14 nodes and 29 directed edges, with loops. Ours: Enc_2->2,phi(256, 8, 4) x 8, Enc_2->0(256, 16, 8), LayerNorm,
Linear(1). GIN: GINConv x 8 with Linear-ReLU-Linear, sum over nodes, Linear(1). Peak memory in processes of their own.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from anyorder import INTO_NODES, EncoderLayer, Features, RandomFeatures, SparseIndexSet, collate
from anyorder.bench import planning
from anyorder.bench.models import LEAN, READ_ONCE, Workload, perceptron
from anyorder.extras import require
from shared import parser, show, start, step_memory, times

NODES, LAYERS = 14, 8
ROWS: dict[str, dict[str, Any]] = {
    "GIN": {},
    "ours": {},
    "ours, keys and queries shared": {"sharing": "keys and queries"},
    "ours, lean": LEAN,
    "ours, lean, half the hidden width": {**LEAN, "hidden": 0.5},
    "ours, read once, half the hidden width": {**READ_ONCE, "hidden": 0.5},
    "ours, into nodes": INTO_NODES,
    "ours, into nodes, three quarters of the hidden width": {**INTO_NODES, "hidden": 0.75},
    "ours, into nodes, half the hidden width": {**INTO_NODES, "hidden": 0.5},
    "ours, into nodes, MLP of the paper": {**INTO_NODES, "mlp_classes": "pointwise"},
}


def molecule(generator: torch.Generator) -> SparseIndexSet:
    """A random tree with one ring bond, both ways, and one more edge one way: 29 directed edges, after the loops."""
    parent = (torch.rand(NODES - 1, generator=generator) * torch.arange(1, NODES)).long()
    links = {tuple(pair) for pair in torch.stack([parent, torch.arange(1, NODES)], 1).tolist()}
    links |= {(b, a) for a, b in links}
    free = [(a, b) for a in range(NODES) for b in range(a) if (a, b) not in links]
    ring, single = (free[number] for number in torch.randperm(len(free), generator=generator)[:2].tolist())
    both = [*sorted(links), ring, ring[::-1], single]
    loops = [(node, node) for node in range(NODES)]
    return SparseIndexSet(torch.tensor([*loops, *both]), num_nodes=NODES)


def batch(graphs: int, channels: int) -> Features:
    """Random features on a disjoint union of such graphs."""
    generator = torch.Generator().manual_seed(0)
    sets = [molecule(generator) for _ in range(graphs)]
    return collate([Features(index, torch.randn(index.num_entries, channels, generator=generator)) for index in sets])


class Ours(nn.Module):
    """Eight 2->2 layers with kernel attention and one to a vector for each graph."""

    def __init__(self, channels: int, dropout: float, *, hidden: float = 1, **lean: Any) -> None:
        super().__init__()
        inner = [
            EncoderLayer(
                order_in=2,
                order_out=2,
                channels=channels,
                channels_hidden=int(hidden * channels),
                heads=4,
                head_channels=8,
                kernel=RandomFeatures(),
                dropout=dropout,
                **lean,
            )
            for _ in range(LAYERS)
        ]
        last = EncoderLayer(order_in=2, order_out=0, channels=channels, heads=8, head_channels=16, dropout=dropout)
        self.layers = nn.ModuleList([*inner, last])
        self.head = nn.Sequential(nn.LayerNorm(channels), nn.Linear(channels, 1))

    def forward(self, x: Features) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.head(x.rows)


class Gin(nn.Module):
    """Eight GIN convolutions with ReLU and dropout, and the sum over the nodes of each graph."""

    def __init__(self, channels: int, dropout: float) -> None:
        super().__init__()
        pyg = require("torch_geometric.nn", "pyg")
        self.layers = nn.ModuleList(pyg.GINConv(perceptron(channels)) for _ in range(LAYERS))
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(channels, 1)

    def forward(self, x: Tensor, links: Tensor, graph: Tensor, graphs: int) -> Tensor:
        for layer in self.layers:
            x = self.dropout(layer(x, links).relu())
        return self.head(x.new_zeros(graphs, x.shape[1]).index_add(0, graph, x))


def make(given: tuple[str, int, int, float]) -> Workload:
    """A model on a batch."""
    name, graphs, channels, dropout = given
    torch.manual_seed(0)
    x = batch(graphs, channels)
    if name != "GIN":
        ours = Ours(channels, dropout, **ROWS[name])
        return Workload(ours, lambda: ours(x))
    gin = Gin(channels, dropout)
    loops = x.index.tuples[:, 0] == x.index.tuples[:, 1]
    links = x.index.tuples[~loops].T.contiguous()
    return Workload(gin, lambda: gin(x.rows[loops], links, x.index.node_graph, graphs))


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--graphs", type=int, default=256)
    options.add_argument("--channels", type=int, default=256)
    options.add_argument("--dropout", type=float, default=0.0, help="of both models (default: 0)")
    chosen = options.parse_args()
    widths = f"{chosen.channels} channels, dropout {chosen.dropout}"
    start(chosen, f"{chosen.graphs} graphs of {NODES} nodes and 29 directed edges, {widths}")
    lines: list[tuple[str, ...]] = [("", "forward s", "x GIN", "step s", "x GIN", "plan/forward", "step GB")]
    settings = (chosen.channels, chosen.dropout)
    for name in ROWS:
        make((name, 2, *settings)).step()  # compiled before the plan is timed
    works = [make((name, chosen.graphs, *settings)) for name in ROWS]
    with planning() as spent:
        works[1].forward()
    gin, ours, *rest = times(works, chosen)
    for name, found in zip(ROWS, (gin, ours, *rest), strict=True):
        cells = [text for value, other in zip(found, gin, strict=True) for text in (f"{value:.3f}", f"{value / other:.1f}")]
        plan = f"{getattr(spent, chosen.clock) / ours[0]:.1%}" if found is ours else "-"
        memory = step_memory(make, (name, chosen.graphs, *settings), (name, 2, *settings))
        lines.append((name, *cells, plan, memory))
    show(lines)


if __name__ == "__main__":
    main()
