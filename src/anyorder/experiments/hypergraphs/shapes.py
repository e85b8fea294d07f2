"""What a model must know of a hypergraph: widths, names, and the constants by which features are normalised."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from anyorder.experiments.hypergraphs.data import Hypergraph, NamedHypergraph
from anyorder.training.shapes import Shapes

Normalisation = Literal["none", "rows", "columns"]


@dataclass(frozen=True)
class EdgeShapes(Shapes):
    """The features of hyperedges."""

    names: tuple[str, ...]
    mean: tuple[float, ...]
    deviation: tuple[float, ...]


@dataclass(frozen=True)
class HypergraphShapes(Shapes):
    """What is needed to build a model for a hypergraph, and to give it others like it."""

    channels_in: int
    channels_out: int
    label_names: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()
    normalise: Normalisation = "none"
    mean: tuple[float, ...] | None = None
    deviation: tuple[float, ...] | None = None
    edges: EdgeShapes | None = None
    label_channels: int = 0
    """The last channels, for the classes that a model is told."""
    digest: str | None = None
    """Tells the hypergraph and its parts from any other."""


def shapes_of(data: NamedHypergraph, normalise: Normalisation, *, label_inputs: bool = False) -> HypergraphShapes:
    """The shapes of a hypergraph, with a channel for each class where a model is told some."""
    graph = data.hypergraph
    features = graph.node_features
    if features is None:
        raise ValueError("the nodes of this hypergraph have no features")
    mean, deviation = _moments(features) if normalise == "columns" else (None, None)
    edges = None
    if graph.edge_features is not None:
        edges = EdgeShapes(tuple(data.edge_feature_names), *_moments(graph.edge_features))
    classes = max(graph.num_classes, len(data.label_names))
    told = classes if label_inputs else 0
    return HypergraphShapes(
        channels_in=features.shape[1] + told,
        channels_out=classes,
        label_names=tuple(data.label_names),
        feature_names=tuple(data.feature_names),
        normalise=normalise,
        mean=mean,
        deviation=deviation,
        edges=edges,
        label_channels=told,
    )


def normalised(graph: Hypergraph, shapes: HypergraphShapes) -> Hypergraph:
    """The hypergraph with its features as the training saw them."""
    features = graph.node_features
    assert features is not None
    if shapes.normalise == "rows":
        total = features.abs().sum(1, keepdim=True)
        features = features / total.where(total > 0, 1.0)
    elif shapes.mean is not None and shapes.deviation is not None:
        features = _standardised(features, shapes.mean, shapes.deviation)
    if shapes.label_channels:
        features = torch.cat([features, features.new_zeros(len(features), shapes.label_channels)], 1)
    edges, known = graph.edge_features, shapes.edges
    scaled = None if edges is None or known is None else _standardised(edges, known.mean, known.deviation)
    return replace(graph, node_features=features, edge_features=scaled)


def _moments(features: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation of each column; the deviation of a constant one is 1."""
    deviation, mean = torch.std_mean(features.double(), 0, unbiased=False)
    constant = deviation <= 1e-6 * mean.abs()  # but for rounding
    return tuple(mean.tolist()), tuple(deviation.masked_fill(constant, 1.0).tolist())


def _standardised(features: Tensor, mean: tuple[float, ...], deviation: tuple[float, ...]) -> Tensor:
    shift, scale = torch.tensor(mean, dtype=torch.float64), torch.tensor(deviation, dtype=torch.float64)
    return ((features - shift) / scale).to(features.dtype)
