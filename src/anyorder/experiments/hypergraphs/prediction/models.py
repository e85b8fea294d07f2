"""Models that score sets of nodes of an observed hypergraph, as configurations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from torch import Tensor, nn

from anyorder.experiments.hypergraphs.data import Hypergraph
from anyorder.experiments.hypergraphs.literature.star import Rows, RowsLinear, drop, rows_of
from anyorder.experiments.hypergraphs.models import alike_nodes
from anyorder.experiments.hypergraphs.prediction.scorers import AttentionScore, MeanScore, PairScore, RangeScore, SAGNNScore
from anyorder.experiments.hypergraphs.prediction.sets import Candidates
from anyorder.layouts.incidence import IncidenceSet
from anyorder.layouts.transfer import Transferable
from anyorder.models.propagation import PropagationEncoder, both_ways
from anyorder.ops.dropout import Dropout
from anyorder.ops.sparse_matrix import SparseMatrix
from anyorder.training.config import configurable
from anyorder.training.run import ModelConfig
from anyorder.training.shapes import Shapes

Decoder = Literal["mean", "range", "sagnn", "attention"]
SCORES: dict[str, type[nn.Module]] = {
    "mean": MeanScore,
    "range": RangeScore,
    "sagnn": SAGNNScore,
    "attention": AttentionScore,
}


@dataclass(frozen=True)
class EdgeSetShapes(Shapes):
    """What a model must know to score sets of nodes."""

    channels_in: int
    digest: str = ""


@dataclass(frozen=True, eq=False)
class Observed(Transferable):
    """What models may see: node features, observed hyperedges, and the nodes alike."""

    features: Rows
    incidence: IncidenceSet
    alike: SparseMatrix | None = None

    def without(self, edges: Tensor) -> Observed:
        """The same nodes, without the hyperedges where ``edges`` is true: those that are to be told."""
        i = self.incidence
        stays = (~edges)[i.edge]
        sizes = {"num_nodes": i.by_node.num_groups, "num_edges": len(i.sizes)}
        return replace(self, incidence=IncidenceSet.build(i.node[stays], i.edge[stays], **sizes))


class MeanRows(nn.Module):
    """Rows of nodes by means over hyperedges: x W + (mean of means of x) V, ReLU between."""

    def __init__(self, channels_in: int, channels: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.project, self.dropout = RowsLinear(channels_in, channels), Dropout(dropout)
        self.own = nn.ModuleList(nn.Linear(channels, channels) for _ in range(layers))
        self.others = nn.ModuleList(nn.Linear(channels, channels, bias=False) for _ in range(layers))

    def forward(self, x: Observed) -> Tensor:
        rows: Tensor = self.project(drop(x.features, self.dropout.p, training=self.training))
        of_edge, of_node = both_ways(x.incidence)
        sizes = x.incidence.sizes.clamp(min=1).unsqueeze(1).to(rows.dtype)
        degrees = x.incidence.by_node.sizes.clamp(min=1).unsqueeze(1).to(rows.dtype)
        for own, others in zip(self.own, self.others, strict=True):
            rows = self.dropout(rows.relu())
            rows = own(rows) + others(of_node(of_edge(rows) / sizes) / degrees)
        return rows


class PropagatedRows(nn.Module):
    """Rows of nodes by attention of ours."""

    def __init__(self, channels_in: int, channels: int, layers: int, dropout: float) -> None:
        super().__init__()
        widths: dict[str, Any] = {"channels_in": channels_in, "channels": channels, "channels_out": channels}
        self.model = PropagationEncoder(**widths, layers=layers, heads=4, dropout=dropout, keep=0.5, gate=0.05)

    def forward(self, x: Observed) -> Tensor:
        rows: Tensor = self.model(x.features, x.incidence, x.alike)
        return rows


class SetScorer(nn.Module):
    """Scores of candidate sets from what is observed."""

    def __init__(self, rows: nn.Module, score: nn.Module, pairs: nn.Module | None = None) -> None:
        super().__init__()
        self.rows, self.score, self.pairs = rows, score, pairs

    def forward(self, x: Observed, sets: Candidates) -> Tensor:
        scores: Tensor = self.score(self.rows(x), sets)
        return scores if self.pairs is None else scores + self.pairs(x.incidence, sets)


@configurable
@dataclass(frozen=True)
class SetModel(ModelConfig):
    """Rows of nodes from the observed hypergraph, and a score of the rows of a set."""

    decoder: Decoder = "attention"
    ours: bool = True
    """Rows by attention of ours; else by means over hyperedges."""
    layers: int = 2
    channels: int = 64
    dropout: float = 0.3
    neighbours: int = 20
    """How many nodes with the most similar features a node attends to, in rows of ours."""
    pairs: bool = True
    """Scores see how often the pairs of a set were observed together."""

    def prepare(self, graph: Hypergraph) -> Observed:
        incidence = IncidenceSet.build(graph.members, graph.edge_of, num_nodes=graph.num_nodes, num_edges=graph.num_edges)
        alike = alike_nodes(graph, self.neighbours) if self.ours and self.neighbours else None
        return Observed(rows_of(graph), incidence, alike)

    def build(self, shapes: Any) -> nn.Module:
        if self.decoder not in SCORES:
            raise ValueError(f"a decoder is one of {', '.join(SCORES)}, got {self.decoder!r}")
        make = PropagatedRows if self.ours else MeanRows
        rows = make(shapes.channels_in, self.channels, self.layers, self.dropout)
        pairs = PairScore(self.channels // 2) if self.pairs else None
        return SetScorer(rows, SCORES[self.decoder](self.channels), pairs)


# The rows of the table. Hyper-SAGNN sees one step of co-membership, as its rows of an adjacency matrix do.
_NHP = SetModel("range", ours=False, layers=1, pairs=False)
SET_MODELS: dict[str, SetModel] = {
    "HypergraphConv (mean)": SetModel("mean", ours=False, layers=2, pairs=False),
    "Hyper-SAGNN": SetModel("sagnn", ours=False, layers=1, pairs=False),
    "NHP (CHESHIRE)": _NHP,
    "NHP (CHESHIRE), with our pairs": replace(_NHP, pairs=True),
    "Ours, without pairs": SetModel(pairs=False),
    "Ours": SetModel(),
}
