"""Colour refinement against what is known, against its other version, and against models of each order."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from anyorder.experiments.expressivity.graphs import Graph
from anyorder.experiments.expressivity.pairs import Pair, skip_links
from anyorder.experiments.expressivity.recipes import MODELS
from anyorder.experiments.expressivity.refinement import refine_pair, tell_apart
from anyorder.experiments.expressivity.verdicts import Judge, copies, judge_exactly


def _graph(graph: nx.Graph) -> Graph:
    return Graph(nx.to_numpy_array(graph).astype(bool))


def _rook() -> Graph:
    return _graph(nx.line_graph(nx.complete_bipartite_graph(4, 4)))


def _shrikhande() -> Graph:
    steps = {(1, 0), (0, 1), (1, 1), (3, 0), (0, 3), (3, 3)}
    nodes = [(a, b) for a in range(4) for b in range(4)]
    matrix = [[((c - a) % 4, (d - b) % 4) in steps for c, d in nodes] for a, b in nodes]
    return Graph(np.array(matrix))


HARD = {
    "cycles": (_graph(nx.cycle_graph(6)), _graph(nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))), 3),
    "skip links": (skip_links(13, 2), skip_links(13, 3), 3),
    "strongly regular": (_rook(), _shrikhande(), 4),
    "paths": (_graph(nx.path_graph(5)), _graph(nx.star_graph(4)), 1),
}


@pytest.mark.parametrize("name", HARD)
def test_known_pairs_fall_at_their_order(name: str) -> None:
    first, second, least = HARD[name]
    assert [tell_apart(first, second, order).apart for order in (1, 2, 3, 4)] == [order >= least for order in (1, 2, 3, 4)]


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_relabelled_graphs_are_never_told_apart(order: int) -> None:
    for first, second, _ in HARD.values():
        for graph in (first, second):
            assert not tell_apart(graph, copies(graph, 1, 7)[0], order).apart


@pytest.mark.parametrize("order", [2, 3])
def test_oblivious_k_wl_is_folklore_one_below(order: int) -> None:
    """On all pairs of trees and small graphs of equal size, and on the hard ones."""
    graphs = [_graph(g) for g in nx.graph_atlas_g()[53:110] if g.number_of_nodes() == 6]
    pairs = [*combinations(graphs[:16], 2), *[(a, b) for a, b, _ in HARD.values() if a.num_nodes < 16]]
    for first, second in pairs:
        lower = tell_apart(first, second, 1) if order == 2 else refine_pair(first, second, order - 1, "folklore")
        assert refine_pair(first, second, order, "oblivious").apart == lower.apart


def test_isomorphism_is_the_truth_that_order_3_reaches_on_small_graphs() -> None:
    graphs = [g for g in nx.graph_atlas_g() if g.number_of_nodes() == 5][:20]
    for first, second in combinations(graphs, 2):
        assert tell_apart(_graph(first), _graph(second), 3).apart == (not nx.is_isomorphic(first, second))


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, marks=pytest.mark.slow if "order 4" in row else ())
        for row in MODELS
        if "order" in row and "connected" not in row
    ],
)
def test_random_weights_tell_apart_what_refinement_of_that_order_does(row: str) -> None:
    order = int(row.split("order ")[1][0])
    for number, (first, second, least) in enumerate(HARD.values()):
        if order == 4 and first.num_nodes > 13 and row != "MLP_pi (order 4)":
            continue
        verdict = Judge().judge(MODELS[row], Pair("", number, first, second), seed=0)  # type: ignore[arg-type]
        assert verdict.reliable
        assert verdict.apart == (order >= least), verdict


@pytest.mark.parametrize("row", ["MLP_pi (order 3, connected)", "MLP_pi (order 4, connected)", "GIN", "PPGN"])
def test_fewer_tuples_and_baselines_stay_below_their_bound(row: str) -> None:
    bound = 3 if row == "PPGN" else 1 if row == "GIN" else int(row.split("order ")[1][0])
    for number, (first, second, least) in enumerate(HARD.values()):
        verdict = Judge().judge(MODELS[row], Pair("", number, first, second), seed=0)  # type: ignore[arg-type]
        assert verdict.reliable
        assert not verdict.apart or least <= bound


def test_refinement_checks_itself_on_a_copy() -> None:
    first, second, _ = HARD["strongly regular"]
    verdict = judge_exactly(Pair("", 0, first, second), 4)
    assert (verdict.apart, verdict.reliable, verdict.how, verdict.statistic) == (True, True, "exact", 1.0)


def test_graphs_of_different_size_differ_at_once() -> None:
    assert tell_apart(skip_links(13, 2), skip_links(11, 2), 1).apart
    with pytest.raises(ValueError, match="an order of at least 1, got 0"):
        tell_apart(skip_links(13, 2), skip_links(11, 2), 0)
