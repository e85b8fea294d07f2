"""The models of the runtime figure (Sec. 5, A.2.3), and message passing of the same width, ready to run on a graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from anyorder.algebra import Lightweight, Projecting, Sharing
from anyorder.extras import require
from anyorder.layers import INTO_NODES, Kernel, RandomFeatures, Softmax
from anyorder.layers.named_kernels import Coupling
from anyorder.layouts import DenseIndexSet, Features, SparseIndexSet
from anyorder.models import Encoder, EquivariantMLP

CHANNELS, HEADS, HEAD_CHANNELS, LAYERS = 32, 4, 8, 4
LEAN: dict[str, Any] = {"sharing": "keys and queries", "mlp_classes": "pointwise, in place"}
"""Settings of the layers that benchmarks call lean."""
READ_ONCE: dict[str, Any] = {
    "sharing": "keys and queries",
    "direct": False,
    "mlp_classes": "pointwise, then in place",
}
"""Entries read their nodes and their reversal in the first map of the MLP, where ``LEAN`` has them do so in attention."""
Layout = Literal["sparse", "dense"]
Convolution = Literal["gcn", "gin", "gatv2", "gps"]


def mean_square(values: Tensor) -> Tensor:
    """A loss for where no other is at hand."""
    return values.square().mean()


@dataclass(frozen=True, eq=False)
class Workload:
    """A model, a call of it on one input, and what a training step makes small."""

    model: nn.Module
    run: Callable[[], Tensor]
    loss: Callable[[Tensor], Tensor] = mean_square

    def forward(self) -> None:
        """One forward pass, without gradients."""
        self.model.eval()
        with torch.no_grad():
            self.run()

    def step(self) -> None:
        """Forward and backward pass of a training step."""
        self.model.train()
        self.model.zero_grad()
        self.loss(self.run()).backward()


@dataclass(frozen=True)
class HigherOrder:
    """MLP_pi: [L_2->2(32), ReLU] x 4, L_2->0(32). Ours, with a kernel: Enc_2->2(32, 8, 4) x 4, Enc_2->0, a head."""

    layout: Layout
    kernel: Kernel | None = None
    coupling: Coupling | None = None
    sharing: Sharing = "none"
    projection_classes: Projecting = "pointwise"
    mlp_classes: Lightweight = "pointwise"
    direct: bool = True
    classes: str = "all"
    channels_hidden: int | None = None

    def build(self) -> nn.Module:
        orders = (2,) * LAYERS + (0,)
        if self.kernel is None:
            return EquivariantMLP(order_in=2, orders=orders, channels_in=CHANNELS, channels=CHANNELS, reduce="sum")
        return Encoder(
            order_in=2,
            orders=orders,
            channels_in=CHANNELS,
            channels=CHANNELS,
            channels_out=CHANNELS,
            heads=HEADS,
            head_channels=HEAD_CHANNELS,
            kernel=self.kernel,
            coupling=self.coupling,
            sharing=self.sharing,
            classes=self.classes,
            projection_classes=self.projection_classes,
            mlp_classes=self.mlp_classes,
            direct=self.direct,
            channels_hidden=self.channels_hidden,
        )

    def on(self, graph: SparseIndexSet, model: nn.Module | None = None) -> Workload:
        """The model on a graph with random features; its index set is new and knows no plan."""
        model = self.build() if model is None else model
        fresh = SparseIndexSet(graph.tuples, num_nodes=graph.num_nodes)
        rows = torch.randn(graph.num_entries, CHANNELS)
        x = Features(fresh, rows) if self.layout == "sparse" else _dense(graph, rows)
        return Workload(model, lambda: model(x).rows)


def _dense(graph: SparseIndexSet, rows: Tensor) -> Features:
    """The same features on all pairs of nodes, zero where there is no edge."""
    grid = torch.zeros(1, graph.num_nodes, graph.num_nodes, rows.shape[1])
    grid[0, graph.tuples[:, 0], graph.tuples[:, 1]] = rows
    return Features(DenseIndexSet(2, torch.ones(1, graph.num_nodes, dtype=torch.bool)), grid)


@dataclass(frozen=True)
class GraphConvolutions:
    """Four convolutions of width 32 on the nodes, the mean over nodes, Linear(32)."""

    convolution: Convolution

    def build(self) -> nn.Module:
        return ConvolutionStack([self._layer() for _ in range(LAYERS)], activate=self.convolution != "gps")

    def _layer(self) -> nn.Module:
        pyg = require("torch_geometric.nn", "pyg")
        if self.convolution == "gcn":
            return pyg.GCNConv(CHANNELS, CHANNELS)
        if self.convolution == "gatv2":
            return pyg.GATv2Conv(CHANNELS, HEAD_CHANNELS, heads=HEADS)
        local = pyg.GINConv(perceptron(CHANNELS))
        return local if self.convolution == "gin" else pyg.GPSConv(CHANNELS, local, heads=HEADS, attn_type="performer")

    def on(self, graph: SparseIndexSet, model: nn.Module | None = None) -> Workload:
        """The model on a graph with random features of nodes."""
        model = self.build() if model is None else model
        links = graph.tuples[graph.tuples[:, 0] != graph.tuples[:, 1]].T.contiguous()
        x = torch.randn(graph.num_nodes, CHANNELS)
        return Workload(model, lambda: model(x, links))


class ConvolutionStack(nn.Module):
    """Convolutions of PyTorch Geometric, with ReLU between where they have none inside, to one vector for the graph."""

    def __init__(self, layers: list[nn.Module], *, activate: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.activation: nn.Module = nn.ReLU() if activate else nn.Identity()
        self.head = nn.Linear(CHANNELS, CHANNELS)

    def forward(self, x: Tensor, links: Tensor) -> Tensor:
        for layer in self.layers:
            x = self.activation(layer(x, links))
        return self.head(x.mean(0, keepdim=True))


def perceptron(channels: int) -> nn.Module:
    """Linear, ReLU, Linear: the update of GIN."""
    return nn.Sequential(nn.Linear(channels, channels), nn.ReLU(), nn.Linear(channels, channels))


Contender = HigherOrder | GraphConvolutions
MODELS: dict[str, Contender] = {
    "MLP_pi (D)": HigherOrder("dense"),
    "MLP_pi (S)": HigherOrder("sparse"),
    "Ours (D)": HigherOrder("dense", Softmax()),
    # phi: ReLU features of Performer, int(d log d) for heads of width d; the paper names the kernel alone
    "Ours (D, phi)": HigherOrder("dense", RandomFeatures()),
    "Ours (S)": HigherOrder("sparse", Softmax()),
    "Ours (S, phi)": HigherOrder("sparse", RandomFeatures()),
    "Ours (S, phi), lean": HigherOrder("sparse", RandomFeatures(), **LEAN),
    "Ours (S, phi), into nodes": HigherOrder("sparse", RandomFeatures(), **INTO_NODES),
    "GCN": GraphConvolutions("gcn"),
    "GIN": GraphConvolutions("gin"),
    "GATv2": GraphConvolutions("gatv2"),
    "GPS (Performer)": GraphConvolutions("gps"),
}


def find_models(names: list[str] | None) -> list[str]:
    """The models of these names, which may be short, without spaces and in upper or lower case; all of them for None.

    >>> find_models(["ours(s,phi)", "gps"])
    ['Ours (S, phi)', 'GPS (Performer)']
    """
    if names is None:
        return list(MODELS)
    return [_find(name) for name in names]


def _find(name: str) -> str:
    begin = [known for known in MODELS if _plain(known).startswith(_plain(name))]
    same = [known for known in begin if _plain(known) == _plain(name)]
    if len(same or begin) != 1:
        what = "several models begin with" if begin else "no model is called"
        raise ValueError(f"{what} {name!r}: expected one of {list(MODELS)}")
    return (same or begin)[0]


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
