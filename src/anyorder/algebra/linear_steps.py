"""The program of a linear layer."""

from __future__ import annotations

from functools import cache
from typing import Literal

from anyorder.algebra.classes import EquivalenceClass, expansion, pools
from anyorder.algebra.partitions import set_partitions
from anyorder.algebra.program import Average, ColumnSpan, Deliver, Program, Project, Reduce, Step


@cache
def linear_terms(
    classes: tuple[EquivalenceClass, ...],
) -> tuple[tuple[EquivalenceClass, ...], tuple[tuple[int, int, int], ...]]:
    """The terms with equalities only that make some exact classes, and (term, class, sign) for each part of them."""
    signed = {(term, n): sign for n, cls in enumerate(classes) for sign, term in expansion(cls)}
    terms = tuple(dict.fromkeys(term for term, _ in signed))
    place = {term: n for n, term in enumerate(terms)}
    return terms, tuple((place[term], n, sign) for (term, n), sign in signed.items())


@cache
def linear_program(
    order_in: int, order_out: int, classes: tuple[EquivalenceClass, ...], reduce: Literal["sum", "mean"]
) -> Program:
    """The program of a linear layer: sums with equalities only under recombined weights, or averages class by class.

    >>> from anyorder.algebra import classes
    >>> print(linear_program(1, 0, classes(1, 0), "sum"))
    pool      source (i) by graph, times w0
    spread    target () += (w0) at graph

    Args:
        order_in, order_out: k and l.
        classes: those that the layer uses.
        reduce: take the ``"sum"`` or the ``"mean"`` over the entries of a class.
    """
    if reduce == "mean":
        terms = [term for cls in classes for _, term in expansion(cls)]
        steps: list[Step] = [Reduce(pool, ()) for pool in dict.fromkeys(term.pool for term in terms)]
        return Program(order_in, order_out, (*steps, *[Average(n, cls) for n, cls in enumerate(classes)]))
    terms = list(linear_terms(classes)[0])
    place = {term: n for n, term in enumerate(terms)}
    steps = []
    for p in set_partitions(order_out):
        into = tuple(term for term in terms if term.kind == "pointwise" and term.target == p)
        if into:
            steps.append(Project("target", p, into, (ColumnSpan("direct", -1, 0, 1),), tuple(place[term] for term in into)))
    rest = [term for term in terms if term.kind != "pointwise"]
    steps += [Reduce(pool, tuple(place[term] for term in some)) for pool, some in pools(rest).items()]
    for p in set_partitions(order_out):
        reads: dict[object, tuple[EquivalenceClass, tuple[int, ...]]] = {}
        for term in (term for term in rest if term.target == p):
            key = term.matched_target if len(term.matching) < 2 else term
            cls, numbers = reads.get(key, (term, ()))
            reads[key] = (cls, (*numbers, place[term]))
        if reads:
            steps.append(Deliver(p, tuple(reads.values())))
    return Program(order_in, order_out, tuple(steps))
