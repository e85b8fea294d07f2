"""Where a trained model looks on a graph: what nodes and edges receive, which class carried it, and a picture."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from anyorder.algebra import EquivalenceClass, meaning
from anyorder.experiments.graphs.batch import GraphArrays, GraphBatch
from anyorder.experiments.graphs.columns import Ints
from anyorder.experiments.graphs.models import GraphModel
from anyorder.experiments.graphs.shapes import GraphShapes
from anyorder.experiments.graphs.values import GraphSet
from anyorder.extras import require
from anyorder.layers import EncoderLayer
from anyorder.layers.attention_maps import attention_map
from anyorder.training.pictures import add_colour_bar, contrast_colours, figure_into

MOST_DRAWN = 200


@dataclass(frozen=True, eq=False)
class GraphAttention:
    """What the nodes and pairs of a graph receive, as multiples of equal shares, and how far each class moves the answer."""

    title: str
    nodes: Tensor | None
    pairs: Tensor | None
    pair_index: Tensor
    carried: dict[str, float]
    """Change of the answer, in units of the network's output, where a class of the layer is left out."""

    def lines(self, names: Sequence[str], count: int = 5) -> list[str]:
        """The nodes and edges with the most attention, and the classes that carried it, in words."""
        found = []
        if self.nodes is not None:
            found.append("nodes: " + _most(self.nodes, names, count))
        if self.pairs is not None and len(self.pairs):
            ends = [f"{names[a]}-{names[b]}" for a, b in self.pair_index.T.tolist()]
            found.append("edges: " + _most(self.pairs, ends, count))
        order = sorted(self.carried, key=lambda name: -self.carried[name])
        found += [f"class {name}: moves the answer by {self.carried[name]:.3g}" for name in order]
        return found


def explain(
    model: nn.Module,
    config: GraphModel,
    shapes: GraphShapes,
    graphs: GraphSet,
    graph: int,
    *,
    layer: int | None = None,
    cls: str | None = None,
) -> GraphAttention:
    """The attention of a layer (from 1; default: the last) on one graph, of one class or of all."""
    batch = GraphArrays(graphs, shapes).batch([graph], config.inputs)
    layers = [part for part in model.modules() if isinstance(part, EncoderLayer)]
    if not layers:
        raise ValueError("this model has no attention to show: train --model ours")
    number = len(layers) if layer is None else layer
    if not 1 <= number <= len(layers):
        raise ValueError(f"layer must be between 1 and {len(layers)}, got {layer}")
    attention = layers[number - 1].attention
    chosen = _classes(attention, cls)
    given = _inputs_of(attention, model, batch)
    received = [_received(attention, given, each) for each in chosen]
    nodes, pairs = (_ratio(received, chosen, blocks) for blocks in (1, 2))
    what = f"class {chosen[0].name}: {meaning(chosen[0])}" if cls else "all classes"
    title = f"layer {number} of {len(layers)}, {what}"
    carried = {each.name: _moved(model, number - 1, each, batch) for each in attention.pooled}
    return GraphAttention(title, nodes, pairs, batch.pairs, carried)


def draw(found: GraphAttention, path: Path, names: Sequence[str], around: int | None = None) -> Path:
    """Draw the graph with its attention as colours; a large one around a node."""
    networkx = require("networkx", "train")
    graph = networkx.Graph()
    graph.add_nodes_from(range(len(names)))
    pairs = found.pair_index.T.tolist()
    graph.add_edges_from(pairs)
    shown = _shown(networkx, graph, around)
    part = graph.subgraph(shown)
    connected = len(shown) > 1 and networkx.is_connected(part)
    place = networkx.kamada_kawai_layout(part) if connected else networkx.spring_layout(part, seed=0)
    ratio: dict[tuple[int, ...], list[float]] = {}
    for pair, value in zip(pairs, [] if found.pairs is None else found.pairs.tolist(), strict=False):
        ratio.setdefault(tuple(sorted(pair)), []).append(value)
    edges = [tuple(sorted(edge)) for edge in part.edges]
    with figure_into(path, found.title) as (figure, axes):
        tones = contrast_colours([float(np.mean(ratio.get(edge, [1.0]))) for edge in edges])
        networkx.draw_networkx_edges(part, place, edgelist=edges, edge_color="0.75", width=4.5, ax=axes)
        networkx.draw_networkx_edges(part, place, edgelist=edges, edge_color=tones, width=3.0, ax=axes)
        values = [1.0] * len(names) if found.nodes is None else found.nodes.tolist()
        colours = contrast_colours([values[node] for node in part])
        options: dict[str, Any] = {"node_color": colours, "edgecolors": "0.3", "node_size": 260 if len(shown) <= 60 else 90}
        networkx.draw_networkx_nodes(part, place, ax=axes, **options)
        if len(shown) <= 60:
            networkx.draw_networkx_labels(part, place, {node: names[node] for node in part}, font_size=6, ax=axes)
        add_colour_bar(figure, axes)
    return path


def _shown(networkx: Any, graph: Any, around: int | None) -> list[int]:
    if around is None:
        if len(graph) > MOST_DRAWN:
            raise ValueError(f"{len(graph)} nodes are too many to draw, at most {MOST_DRAWN}: name one of them with --node")
        return list(graph)
    near = networkx.single_source_shortest_path_length(graph, around, cutoff=2)
    return sorted(near, key=lambda node: near[node])[:MOST_DRAWN]


def _classes(attention: Any, name: str | None) -> list[EquivalenceClass]:
    known = {each.name: each for each in attention.pooled}
    if name is None:
        return list(known.values())
    found = [each for text, each in known.items() if text.replace(" ", "") == name.replace(" ", "")]
    if not found:
        raise ValueError(f"this layer has no attention of class {name!r}; it has {', '.join(known)}")
    return found


def _inputs_of(attention: nn.Module, model: nn.Module, batch: GraphBatch) -> tuple[Any, ...]:
    """What an attention reads when the model sees a graph."""
    seen: list[tuple[Any, ...]] = []

    def keep(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        seen.append((given[0], given[1] if len(given) > 1 else named.get("target")))

    hook = attention.register_forward_pre_hook(keep, with_kwargs=True)
    try:
        _out(model, batch)
    finally:
        hook.remove()
    return seen[0]


def _received(attention: Any, given: tuple[Any, ...], cls: EquivalenceClass) -> tuple[Tensor, Tensor, Tensor]:
    """What each entry receives, on average over heads and outputs, what it would of equal shares, and its first nodes."""
    x, target = given
    with torch.no_grad():
        weights = attention_map(attention, x, cls, target).mean(0)
    there = weights > 0
    equal = there / there.sum(1, keepdim=True).clamp(min=1)
    return weights.sum(0), equal.sum(0), x.index.entries(cls.source).tuples[:, 0]


def _ratio(received: Sequence[tuple[Tensor, ...]], classes: Sequence[EquivalenceClass], blocks: int) -> Tensor | None:
    """Attention of the entries of a kind (nodes have one block, pairs two) as multiples of equal shares."""
    of = [found for found, cls in zip(received, classes, strict=True) if cls.source.num_blocks == blocks]
    if not of:
        return None
    total, equal = sum(found[0] for found in of), sum(found[1] for found in of)
    assert isinstance(total, Tensor) and isinstance(equal, Tensor)
    return torch.where(equal > 0, total / equal.clamp(min=1e-12), torch.ones_like(total))


def _moved(model: nn.Module, layer: int, cls: EquivalenceClass, batch: GraphBatch) -> float:
    """How far the answer moves where the values of a class are zero."""
    changed = copy.deepcopy(model)
    attention: Any = [part for part in changed.modules() if isinstance(part, EncoderLayer)][layer].attention
    with torch.no_grad():
        attention.weights_of(cls)["value"].zero_()
    return float((_out(changed, batch) - _out(model, batch)).abs().mean())


def _out(model: nn.Module, batch: GraphBatch) -> Tensor:
    """Rows of nodes, before anything is asked about them."""
    network: Any = model.network
    with torch.no_grad():
        out: Tensor = network.eval()(batch)
    return out


def _most(values: Tensor, names: Sequence[str], count: int) -> str:
    order: Ints = np.argsort(-values.numpy(), kind="stable")[:count]
    return ", ".join(f"{names[n]} {float(values[n]):.2f}" for n in order.tolist())
