"""Predictions for the nodes of a hypergraph: what a user asks for, and the file they get."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from anyorder.experiments.hypergraphs.data import UNKNOWN, NamedHypergraph
from anyorder.experiments.hypergraphs.files import read_edge_list, read_hif_hypergraph
from anyorder.experiments.hypergraphs.shapes import HypergraphShapes
from anyorder.files import replacing
from anyorder.training.run import PredictRequest


def read_request(request: PredictRequest, shapes: HypergraphShapes, label: str) -> NamedHypergraph:
    """The hypergraph of a request, its features in the order of the training: HIF (``.json``) or a list of hyperedges."""
    path = request.input
    assert path is not None
    features = request.options.get("features")
    if ".json" in [ending.lower() for ending in path.suffixes[-2:]]:
        if features is not None:
            raise ValueError(f"{path} is a HIF file, which has its features inside: {features} is not needed")
        data = read_hif_hypergraph(path, label=label)
    else:
        data = read_edge_list(path, features=features)
    return _aligned(data, shapes, path)


def _aligned(data: NamedHypergraph, shapes: HypergraphShapes, path: Path) -> NamedHypergraph:
    """The same hypergraph with the features that the model was trained on, found by name where they have names."""
    data = _aligned_edges(data, () if shapes.edges is None else shapes.edges.names, path)
    expected, graph = shapes.feature_names, data.hypergraph
    assert graph.node_features is not None
    channels = graph.node_features.shape[1]
    if not expected:
        if channels != shapes.channels_in:
            raise ValueError(f"{path}: the model takes {shapes.channels_in} features per node, got {channels}")
        return data
    features = graph.node_features[:, _places(expected, data.feature_names, f"{path}: feature")]
    return replace(data, hypergraph=replace(graph, node_features=features), feature_names=tuple(expected))


def _aligned_edges(data: NamedHypergraph, expected: Sequence[str], path: Path) -> NamedHypergraph:
    """The same for the features of hyperedges."""
    features = None
    if expected:
        places = _places(expected, data.edge_feature_names, f"{path}: attribute of hyperedges")
        assert data.hypergraph.edge_features is not None
        features = data.hypergraph.edge_features[:, places]
    return replace(data, hypergraph=replace(data.hypergraph, edge_features=features), edge_feature_names=tuple(expected))


def _places(expected: Sequence[str], there: tuple[str, ...], what: str) -> list[int]:
    absent = [name for name in expected if name not in there]
    if absent:
        raise ValueError(f"{what} {absent[0]!r} of the training is missing; there are {list(there)}")
    return [there.index(name) for name in expected]


def default_output(request: PredictRequest) -> Path:
    """Where predictions go by default: beside the input, or into the folder of the model."""
    if request.input is None:
        return request.folder / "predictions.csv"
    stem = request.input
    while stem.suffix.lower() in (".gz", ".json", ".txt", ".csv", ".tsv"):
        stem = stem.with_suffix("")
    return stem.with_name(f"{stem.name}-predictions.csv")


def write_predictions(path: Path, data: NamedHypergraph, probabilities: Tensor, classes: Sequence[str]) -> None:
    """A CSV file with a row per node: its name, its class where it is known, the predicted class and all probabilities."""
    names = classes or [str(number) for number in range(probabilities.shape[1])]
    labels = data.hypergraph.labels
    known = labels.tolist() if labels is not None else [UNKNOWN] * len(probabilities)
    best, rows = probabilities.argmax(1).tolist(), probabilities.to(torch.float64).tolist()
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["node", "label", "predicted", *[f"p({name})" for name in names]])
        for node, (label, predicted, row) in enumerate(zip(known, best, rows, strict=True)):
            given = "" if label == UNKNOWN else data.label_name(label)
            writer.writerow([data.node_name(node), given, names[predicted], *[f"{value:.6g}" for value in row]])
