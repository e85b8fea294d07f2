"""Equivalence classes in words and formulas."""

from __future__ import annotations

from anyorder.algebra.classes import EquivalenceClass


def formula(cls: EquivalenceClass) -> str:
    """What the class adds to an output entry.

    >>> from anyorder.algebra.classes import classes
    >>> formula(classes(2, 1)[3])
    'Y[i] += sum_j X[i,j] W'

    Args:
        cls: the class.
    """
    inputs, outputs = cls.names()
    summed = [name for name in dict.fromkeys(inputs) if name not in outputs]
    total = f"sum_{{{','.join(summed)}}} " if len(summed) > 1 else f"sum_{summed[0]} " if summed else ""
    read = f"X[{','.join(inputs)}]" if inputs else "X"
    write = f"Y[{','.join(outputs)}]" if outputs else "Y"
    return f"{write} += {total}{read} W"


def meaning(cls: EquivalenceClass) -> str:
    """What the class does, in words.

    >>> from anyorder.algebra import select
    >>> [meaning(c) for c in select(2, 2, lambda c: c.name == "(i,k) -> (i,j)")]
    ['edge (i,j) receives the edges that leave i']

    Args:
        cls: the class.
    """
    inputs, outputs = cls.names()
    return f"{_entry(outputs)} receives {_sources(cls, inputs, outputs)}"


def _entry(names: tuple[str, ...]) -> str:
    distinct = len(set(names))
    if not names:
        return "the graph"
    if distinct == 1:
        return f"node {names[0]}"
    noun = "edge" if len(names) == 2 else "hyperedge" if distinct == len(names) else "tuple"
    return f"{noun} ({','.join(names)})"


def _plural(names: tuple[str, ...]) -> str:
    distinct = len(set(names))
    if distinct == 1:
        return "nodes"
    if len(names) == 2:
        return "edges"
    return "hyperedges" if distinct == len(names) else f"tuples of the form ({','.join(names)})"


def _sources(cls: EquivalenceClass, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> str:
    if cls.kind == "pointwise":
        if inputs == outputs:
            return "itself"
        if inputs == outputs[::-1]:
            return f"the reverse {_entry(inputs)}"
        return _entry(inputs) if inputs else "the graph's own value"
    if cls.kind == "global":
        return _global(inputs, outputs)
    if len(inputs) == 2:
        shared = next(name for name in inputs if name in outputs)
        return f"the edges that {'leave' if inputs[0] == shared else 'enter'} {shared}"
    if len(set(inputs)) < len(inputs):
        return f"the {_plural(inputs)}"
    held = [f"{name} at axis {inputs.index(name) + 1}" for name in dict.fromkeys(outputs) if name in inputs]
    return f"the {_plural(inputs)} with {' and '.join(held)}"


def _global(inputs: tuple[str, ...], outputs: tuple[str, ...]) -> str:
    nodes = list(dict.fromkeys(outputs))
    if not nodes:
        return f"all {_plural(inputs)}"
    listed = nodes[0] if len(nodes) == 1 else ", ".join(nodes[:-1]) + " and " + nodes[-1]
    if len(set(inputs)) == 1:
        return f"all nodes other than {listed}"
    touching = f"do not touch {listed}" if len(nodes) == 1 else f"touch none of {listed}"
    return f"all {_plural(inputs)} that {touching}"
