"""Batches of small graphs: our model, full and lean, beside GPS with multihead attention, which is what people use there.

    OMP_NUM_THREADS=1 python benchmarks/small_graphs.py --graphs 1 32 256 --channels 32 64

Graphs of 23 nodes and 47 directed edges, with loops. Ours: Enc_2->2,phi x 4 with four heads, together as wide as the layer,
or of 8 channels each as in the recipes of molecules, and Enc_2->0. GPS: GPSConv x 4
with GINConv inside, multihead or Performer attention, and the sum over nodes. All see the same plan or edge index at each
step; what making the plan of a new batch takes stands beside.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from anyorder import INTO_NODES, Encoder, Features, RandomFeatures, SparseIndexSet, collate
from anyorder.bench import planning
from anyorder.bench.models import LEAN, READ_ONCE, Workload, perceptron
from anyorder.extras import require
from shared import parser, show, start, times

NODES, LAYERS, HEADS = 23, 4, 4
ROWS: dict[str, dict[str, Any]] = {
    "GPS (multihead)": {},
    "GPS (Performer)": {},
    "ours": {},
    "ours, lean": LEAN,
    "ours, read once, half the hidden width": READ_ONCE,
    "ours, into nodes": INTO_NODES,
    "ours, into nodes, heads of 8 channels": {**INTO_NODES, "head_channels": 8},
}


def graph(generator: torch.Generator) -> SparseIndexSet:
    """A random tree with one ring bond, both ways, and one more edge one way, after the loops."""
    parent = (torch.rand(NODES - 1, generator=generator) * torch.arange(1, NODES)).long()
    links = {tuple(pair) for pair in torch.stack([parent, torch.arange(1, NODES)], 1).tolist()}
    links |= {(b, a) for a, b in links}
    free = [(a, b) for a in range(NODES) for b in range(a) if (a, b) not in links]
    ring, single = (free[number] for number in torch.randperm(len(free), generator=generator)[:2].tolist())
    return SparseIndexSet(
        torch.tensor([*((n, n) for n in range(NODES)), *sorted(links), ring, ring[::-1], single]), num_nodes=NODES
    )


class Gps(nn.Module):
    """Four GPS layers and the sum over the nodes of each graph."""

    def __init__(self, channels: int, attention: str) -> None:
        super().__init__()
        pyg = require("torch_geometric.nn", "pyg")
        self.layers = nn.ModuleList(
            pyg.GPSConv(channels, pyg.GINConv(perceptron(channels)), heads=HEADS, attn_type=attention) for _ in range(LAYERS)
        )
        self.head = nn.Linear(channels, 1)

    def forward(self, x: Tensor, links: Tensor, graph: Tensor, graphs: int) -> Tensor:
        for layer in self.layers:
            x = layer(x, links, graph)
        return self.head(x.new_zeros(graphs, x.shape[1]).index_add(0, graph, x))


def make(name: str, x: Features) -> Workload:
    """A model on a batch."""
    torch.manual_seed(0)
    if name.startswith("ours"):
        ours = Encoder(
            order_in=2,
            orders=(2,) * LAYERS + (0,),
            channels_in=x.channels,
            channels=x.channels,
            channels_out=1,
            heads=HEADS,
            kernel=RandomFeatures(),
            channels_hidden=x.channels // 2 if "half" in name else None,
            **{"head_channels": x.channels // HEADS, **ROWS[name]},
        )
        return Workload(ours, lambda: ours(x).rows)
    gps = Gps(x.channels, "multihead" if "multihead" in name else "performer")
    loops = x.index.tuples[:, 0] == x.index.tuples[:, 1]
    links, nodes = x.index.tuples[~loops].T.contiguous(), x.rows[loops]
    return Workload(gps, lambda: gps(nodes, links, x.index.node_graph, x.index.num_graphs))


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--graphs", type=int, nargs="+", default=[1, 32, 256])
    options.add_argument("--channels", type=int, nargs="+", default=[32, 64])
    chosen = options.parse_args()
    start(chosen, f"Graphs of {NODES} nodes and 47 directed edges, {LAYERS} layers")
    lines: list[tuple[str, ...]] = [
        ("graphs", "channels", "", "forward ms", "x multihead", "step ms", "x multihead", "plan ms")
    ]
    for channels in chosen.channels:
        for graphs in chosen.graphs:
            generator = torch.Generator().manual_seed(0)
            sets = [graph(generator) for _ in range(graphs)]
            rows = [torch.randn(index.num_entries, channels, generator=generator) for index in sets]
            works = []
            plans = []
            for name in ROWS:
                works.append(make(name, collate([Features(*each) for each in zip(sets, rows, strict=True)])))
                with planning() as spent:
                    works[-1].forward()
                plans.append(getattr(spent, chosen.clock))
            found = times(works, chosen)
            for name, each, plan in zip(ROWS, found, plans, strict=True):
                cells = [text for a, b in zip(each, found[0], strict=True) for text in (f"{a * 1e3:.1f}", f"{a / b:.1f}")]
                lines.append((str(graphs), str(channels), name, *cells, f"{plan * 1e3:.1f}" if plan else "-"))
    show(lines)


if __name__ == "__main__":
    main()
