"""Counts of patterns against brute force, the order that they need, and the task."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch

from anyorder.errors import InputError
from anyorder.experiments import find
from anyorder.experiments.expressivity.counting import Counting, random_graphs
from anyorder.experiments.expressivity.counting_recipes import MODELS
from anyorder.experiments.expressivity.counts import COUNTS, cycles
from anyorder.experiments.expressivity.graphs import Graph
from anyorder.experiments.expressivity.models import OrderMLP, WholeGraphModel, Width
from anyorder.experiments.expressivity.refinement import tell_apart
from anyorder.training.config import from_data, to_data
from anyorder.training.fit import execute
from anyorder.training.jobs import Job

PATTERNS = {
    "triangles": nx.cycle_graph(3),
    "tailed triangles": nx.Graph([(0, 1), (1, 2), (2, 0), (2, 3)]),
    "chordal cycles": nx.Graph([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]),
    "4-cycles": nx.cycle_graph(4),
    "5-cycles": nx.cycle_graph(5),
    "6-cycles": nx.cycle_graph(6),
    "4-cliques": nx.complete_graph(4),
    "4-paths": nx.path_graph(4),
}


def _brute_force(graph: Graph, pattern: nx.Graph) -> list[int]:
    """For each node, the one-to-one maps of the pattern that keep its edges and hit it, over the pattern's symmetries."""

    def maps(matrix: np.ndarray) -> np.ndarray:
        placed = np.array(list(permutations(range(len(matrix)), len(pattern))))
        kept = np.ones(len(placed), dtype=bool)
        for u, v in pattern.edges:
            kept &= matrix[placed[:, u], placed[:, v]]
        return placed[kept]

    symmetries = len(maps(nx.to_numpy_array(pattern).astype(bool)))
    return (np.bincount(maps(graph.adjacency).reshape(-1), minlength=graph.num_nodes) // symmetries).tolist()


@pytest.mark.parametrize("name", COUNTS)
def test_counts_are_those_of_brute_force(name: str) -> None:
    graphs = [nx.gnp_random_graph(8, density, seed=seed) for seed, density in enumerate((0.2, 0.4, 0.6, 0.8, 1.0, 0.0))]
    for each in graphs:
        graph = Graph(nx.to_numpy_array(each).astype(bool))
        assert COUNTS[name][0](graph).tolist() == _brute_force(graph, PATTERNS[name])
    assert {*PATTERNS} == {*COUNTS}


def test_short_cycles_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 3 nodes, got 2"):
        cycles(Graph.from_edges(2, [(0, 1)]), 2)


def test_orders_below_what_a_pattern_needs_cannot_count_it() -> None:
    """Pairs that the order below does not tell apart, and that have different counts."""
    hexagon = Graph.from_edges(6, [(v, (v + 1) % 6) for v in range(6)])
    triangles = Graph.from_edges(6, [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)])
    assert not tell_apart(hexagon, triangles, 2).apart
    for name in ("triangles", "6-cycles", "4-paths"):
        assert COUNTS[name][0](hexagon).sum() != COUNTS[name][0](triangles).sum()
    rook = Graph(nx.to_numpy_array(nx.line_graph(nx.complete_bipartite_graph(4, 4))).astype(bool))
    steps = {(1, 0), (0, 1), (1, 1), (3, 0), (0, 3), (3, 3)}
    nodes = [(a, b) for a in range(4) for b in range(4)]
    shrikhande = Graph(np.array([[((c - a) % 4, (d - b) % 4) in steps for c, d in nodes] for a, b in nodes]))
    assert not tell_apart(rook, shrikhande, 3).apart
    for name, (count, needed) in COUNTS.items():
        assert (count(rook).sum() == count(shrikhande).sum()) == (needed <= 3), name


def test_an_order_below_is_refused_unless_asked_for() -> None:
    with pytest.raises(InputError, match="counting 4-cliques needs order 4, got order 3"):
        Counting().collate(OrderMLP(order=3))
    with pytest.raises(InputError, match="counting triangles needs order 3, got order 2"):
        Counting(patterns=("triangles",)).collate(OrderMLP(order=2))
    assert Counting(patterns=("6-cycles",)).collate(OrderMLP(order=3)) is not None
    assert Counting(below=True).collate(OrderMLP(order=2)) is not None
    with pytest.raises(InputError, match="patterns must be some of"):
        Counting(patterns=("squares",))


def test_the_split_is_the_usual_one_and_targets_are_normalised() -> None:
    splits = Counting(graphs=100).load(seed=0, data_dir=None)
    assert [len(part) for part in (splits.train, splits.valid, splits.test)] == [30, 20, 50]  # type: ignore[arg-type]
    assert torch.allclose(torch.cat(splits.train.counts).std(0), torch.ones(8), atol=1e-5)  # type: ignore[attr-defined]
    first, again = (random_graphs(10, 10, 12, seed=3) for _ in range(2))
    assert all((a.adjacency == b.adjacency).all() for a, b in zip(first, again))


def test_a_model_of_order_3_learns_to_count(tmp_path: Path) -> None:
    job = Job.of(find("counting/mlp-pi-order-3"), scale="quick", seed=0)
    small = Counting(graphs=60, most_nodes=10, below=True)
    run = replace(job.run, task=small, schedule=replace(job.run.schedule, epochs=8, evaluate_every=4))
    assert from_data(to_data(run)) == run
    record = execute(replace(job, run=run), tmp_path)
    assert record.history[-1]["MAE"] < record.history[3]["MAE"]
    assert {*record.metrics} == {"", *COUNTS}


@pytest.mark.parametrize("row", ["GIN", "PPGN", "MLP_pi (order 2)", "MLP_pi (order 3)", "Ours (phi, order 2)"])
def test_answers_do_not_depend_on_the_other_graphs_of_a_batch(row: str) -> None:
    """A small graph beside a large one, which pads it, answers as it does alone."""
    model = MODELS[row]
    assert isinstance(model, WholeGraphModel)
    torch.manual_seed(0)
    network = model.build(Width(3, per_node=True)).double().eval()
    small, large = random_graphs(1, 8, 8, seed=0)[0], random_graphs(1, 14, 14, seed=1)[0]
    alone, together = (network(model.inputs(graphs, torch.float64)) for graphs in ([small], [small, large]))
    assert together.shape == (22, 3)
    assert torch.allclose(alone, together[:8], rtol=1e-9, atol=1e-9)
