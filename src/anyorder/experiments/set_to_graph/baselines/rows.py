"""The learned baseline rows of the set-to-graph table, by name, for both tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from anyorder.experiments.set_to_graph.baselines.flat_mlp import FlatMLPConfig
from anyorder.experiments.set_to_graph.baselines.knn_gnn import KnnGraphNetworkConfig
from anyorder.experiments.set_to_graph.baselines.pairs import PairBasis, PairModelConfig, Pooling
from anyorder.experiments.set_to_graph.baselines.s2g import SetToGraphConfig
from anyorder.experiments.set_to_graph.baselines.siamese import SiameseConfig, SiameseTripletConfig

# Widths that give the published numbers of parameters. No dropout, as their authors trained them.
_DELAUNAY_S2G = SetToGraphConfig(channels_in=2, widths=(500, 500, 500, 1000, 500, 500, 80), head=(1000, 1000))
_DELAUNAY_GNN = KnnGraphNetworkConfig(channels_in=2, widths=(1000, 1500, 1000), neighbours=0)
_JETS_S2G = SetToGraphConfig(
    channels_in=10, widths=(256,) * 4 + (5,), head=(256,), pooling=Pooling.SUM, attention=True, own_diagonal=False
)

DELAUNAY_ROWS: Mapping[str, PairModelConfig] = MappingProxyType(
    {
        "MLP": FlatMLPConfig(channels_in=2, max_points=80, widths=(500, 1000, 1000, 1000, 500)),
        "SIAM": SiameseConfig(channels_in=2, widths=(700, 700, 700, 1400, 700, 700, 112), head=(1000, 1000)),
        "SIAM-3": SiameseTripletConfig(channels_in=2, widths=(500, 1000, 1500, 1250, 1000, 500, 500, 80)),
        "GNN0": _DELAUNAY_GNN,
        "GNN5": replace(_DELAUNAY_GNN, neighbours=5),
        "GNN10": replace(_DELAUNAY_GNN, neighbours=10),
        "S2G": _DELAUNAY_S2G,
        "S2G+": replace(_DELAUNAY_S2G, basis=PairBasis.FULL),
    }
)
"""Baselines for points in the plane, of at most 80 points for the MLP."""

JETS_ROWS: Mapping[str, PairModelConfig] = MappingProxyType(
    {
        "MLP": FlatMLPConfig(channels_in=10, max_points=15, widths=(512, 256, 512)),
        # with batch norm the published number of parameters would be exceeded by its 3,072 scales and shifts
        "SIAM": SiameseConfig(channels_in=10, widths=(384,) * 4 + (5,), head=(256,), batch_norm=False),
        "SIAM-3": SiameseTripletConfig(channels_in=10, widths=(384,) * 4 + (20,)),
        "GNN": KnnGraphNetworkConfig(channels_in=10, widths=(350, 350, 300, 20), neighbours=5),
        "S2G": _JETS_S2G,
        "S2G+": replace(_JETS_S2G, basis=PairBasis.FULL),
    }
)
"""Baselines for tracks with ten features, of at most 15 tracks for the MLP."""
