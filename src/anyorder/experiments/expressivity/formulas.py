"""Pairs of formulas, one with a solution and one without, as graphs that message passing cannot tell apart (EXP)."""

from __future__ import annotations

from random import Random

from anyorder.experiments.expressivity.graphs import Graph
from anyorder.experiments.expressivity.pairs import Pair
from anyorder.extras import require

Literal = int  # 2 v is the variable v, 2 v + 1 its negation
Clause = tuple[Literal, ...]
HALVES = (3, 5, 7)
PAIRS = 100


def different(variables: list[int]) -> list[Clause]:
    """Clauses that say of a cycle of variables: each is different from the next. Odd cycles have no solution.

    >>> different([0, 1])
    [(0, 2), (1, 3), (2, 0), (3, 1)]
    """
    following = [*variables[1:], variables[0]]
    return [(2 * v + no, 2 * w + no) for v, w in zip(variables, following, strict=True) for no in (0, 1)]


def core(half: int) -> tuple[list[Clause], list[Clause]]:
    """One cycle of 2 ``half`` variables, and two of ``half``: locally the same; if ``half`` is odd, one is solvable."""
    if half < 3 or half % 2 == 0:
        raise ValueError(f"half of a core must be odd and at least 3, got {half}")
    whole = list(range(2 * half))
    return different(whole), different(whole[:half]) + different(whole[half:])


def planar(num_variables: int, num_clauses: int, random: Random) -> list[Clause]:
    """Random clauses of two or three literals whose graph is planar."""
    nx = require("networkx", "pyg")
    clauses: list[Clause] = []
    while len(clauses) < num_clauses:
        variables = random.sample(range(num_variables), random.choice((2, 3)))
        tried = [*clauses, tuple(2 * v + random.randrange(2) for v in variables)]
        if nx.check_planarity(nx.from_edgelist(edges_of(num_variables, tried)))[0]:
            clauses = tried
    return clauses


def edges_of(num_variables: int, clauses: list[Clause]) -> list[tuple[int, int]]:
    """A node for each literal and each clause; a literal is joined to its negation and to the clauses that it is in."""
    opposite = [(2 * v, 2 * v + 1) for v in range(num_variables)]
    return opposite + [(x, 2 * num_variables + number) for number, clause in enumerate(clauses) for x in clause]


def formula_graph(num_variables: int, clauses: list[Clause]) -> Graph:
    """The graph of a formula.

    >>> formula_graph(2, different([0, 1])).num_nodes
    8
    """
    return Graph.from_edges(2 * num_variables + len(clauses), edges_of(num_variables, clauses))


def exp(pairs: int = PAIRS, seed: int = 0) -> list[Pair]:
    """Pairs after the construction of EXP (Abboud et al. 2021): a core, and beside it the same planar formula in both."""
    random = Random(seed)
    made = []
    for number in range(pairs):
        half = random.choice(HALVES)
        extra = random.randint(3, 5)
        beside = [tuple(x + 4 * half for x in clause) for clause in planar(extra, random.randint(3, 7), random)]
        first, second = (formula_graph(2 * half + extra, clauses + beside) for clauses in core(half))
        made.append(Pair("", number, first, second))
    return made
