from itertools import product
from random import Random

import networkx as nx
import pytest

from anyorder.experiments.expressivity.formulas import core, edges_of, exp, formula_graph, planar
from anyorder.experiments.expressivity.refinement import tell_apart


def solvable(num_variables, clauses):
    return any(
        all(any(values[x // 2] != x % 2 for x in clause) for clause in clauses)
        for values in product((0, 1), repeat=num_variables)
    )


@pytest.mark.parametrize("half", [3, 5])
def test_one_of_a_core_has_a_solution(half):
    first, second = core(half)
    assert solvable(2 * half, first)
    assert not solvable(2 * half, second)
    assert len(first) == len(second) == 4 * half


@pytest.mark.parametrize("half", [1, 2, 4])
def test_a_core_that_would_be_solvable_twice_is_refused(half):
    with pytest.raises(ValueError, match="must be odd and at least 3"):
        core(half)


def test_pairs_are_alike_for_message_passing_and_not_for_order_3():
    for pair in exp(3):
        assert not nx.is_isomorphic(*(nx.from_numpy_array(graph.adjacency) for graph in (pair.first, pair.second)))
        assert not tell_apart(pair.first, pair.second, 1).apart
        assert tell_apart(pair.first, pair.second, 3).apart


def test_pairs_are_those_of_the_seed():
    first, again, other = (exp(2, seed)[1].first.adjacency for seed in (0, 0, 1))
    assert (first == again).all()
    assert first.shape != other.shape or (first != other).any()


def test_formulas_beside_the_core_are_planar():
    clauses = planar(5, 7, Random(0))
    assert len(clauses) == 7
    assert nx.check_planarity(nx.from_edgelist(edges_of(5, clauses)))[0]
    assert formula_graph(5, clauses).num_nodes == 17
