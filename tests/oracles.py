"""The definitions of the paper, index by index, in plain loops. Nothing here uses the library."""

from __future__ import annotations

import math
from itertools import product

import torch


def pattern(index):
    """Equality pattern of a tuple: the position of the first equal element, for each element."""
    return tuple(index.index(value) for value in index)


def same_class(i, j, positions, order_in):
    """Whether (i, j) has the equality pattern of a partition of the k + l positions, given as labels."""
    whole = tuple(i) + tuple(j)
    return all(
        (whole[a] == whole[b]) == (positions[a] == positions[b]) for a in range(len(whole)) for b in range(len(whole))
    )


def equalities_hold(i, j, positions, order_in):
    """The same without the inequalities between i and j: those within i and within j stay."""
    whole = tuple(i) + tuple(j)
    for a, b in product(range(len(whole)), repeat=2):
        across = (a < order_in) != (b < order_in)
        tied = positions[a] == positions[b]
        if tied and whole[a] != whole[b]:
            return False
        if not across and not tied and whole[a] == whole[b]:
            return False
    return True


def linear(values, tuples, graphs, targets, target_graphs, weights, bias, reduce):
    """Eq. 1 over sparse index sets: ``weights`` maps position labels to matrices, ``bias`` maps patterns to vectors."""
    some = next(iter(weights.values()))
    out = torch.zeros(len(targets), some.shape[1], dtype=values.dtype)
    for row, (j, graph) in enumerate(zip(targets, target_graphs)):
        for positions, weight in weights.items():
            total, count = torch.zeros(values.shape[1], dtype=values.dtype), 0
            for entry, i in enumerate(tuples):
                if graphs[entry] == graph and same_class(i, j, positions, len(i)):
                    total, count = total + values[entry], count + 1
            if reduce == "mean" and count:
                total = total / count
            out[row] += total @ weight
        if bias is not None:
            out[row] += bias[pattern(tuple(j))]
    return out


def attention(values, tuples, graphs, targets, target_graphs, classes, score, member, normalize=True):
    """Eq. 10-12 and 16-21, head by head.

    ``classes`` maps position labels to the weights of a class: ``{"pointwise": w}`` or
    ``{"query": f(j), "key": f(i), "value": w[in, head, channel], "output": w[head, channel, out]}``, where ``query`` and
    ``key`` give (head, channel). ``score(q, k)`` compares them; ``member`` says which (i, j) belong to a class.
    """
    channels = values.shape[1]
    out = torch.zeros(len(targets), channels, dtype=values.dtype)
    for row, (j, graph) in enumerate(zip(targets, target_graphs)):
        for positions, weight in classes.items():
            inside = [entry for entry, i in enumerate(tuples) if graphs[entry] == graph and member(i, j, positions, len(i))]
            if "pointwise" in weight:
                for entry in inside:
                    out[row] += values[entry] @ weight["pointwise"]
                continue
            if not inside:
                continue
            query = weight["query"](tuple(j), graph)
            for h in range(query.shape[0]):
                scores = torch.stack([score(query[h], weight["key"](tuple(tuples[e]), graph)[h]) for e in inside])
                if normalize:
                    scores = scores / scores.sum()
                mixed = sum(s * (values[e] @ weight["value"][:, h]) for s, e in zip(scores, inside))
                out[row] += mixed @ weight["output"][h]
    return out


def lightweight(values, tuples, graphs, weights, bias):
    """A function j -> sum over pointwise classes of A_fix(j) w + b (Prop. 2); weights maps position labels to tensors."""
    where = {(graph, tuple(i)): entry for entry, (i, graph) in enumerate(zip(tuples, graphs))}

    def at(j, graph):
        total = bias.clone()
        for positions, weight in weights.items():
            order_in = len(positions) - len(j)
            fixed = tuple(j[positions[order_in:].index(positions[a])] for a in range(order_in))
            entry = where.get((graph, fixed))
            if entry is not None and same_class(fixed, j, positions, order_in):
                total = total + torch.einsum("i,ihc->hc", values[entry], weight)
        return total

    return at


def softmax_score(q, k):
    return torch.exp(q @ k / math.sqrt(len(q)))
