"""Operators that are called without torch's dispatcher give what they give through it."""

from __future__ import annotations

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from anyorder.ops.gather import _gather_add, _gather_beside, _scatter_sums

ROWS = [torch.tensor([0, 1, -1, 1, 0]), torch.tensor([3, 3, 3, -1, 0])]


def _given():
    generator = torch.Generator().manual_seed(0)
    made = [torch.randn(n, 3, dtype=torch.float64, generator=generator) for n in (5, 2, 4)]
    return [part.requires_grad_() for part in made]


def _grads(function):
    base, *tables = leaves = _given()
    made = function(base, tables, ROWS)
    first = torch.autograd.grad(made.square().sum(), leaves, create_graph=True)
    second = torch.autograd.grad(sum(part.square().sum() for part in first), leaves)
    return [made, *first, *second]


def test_derivatives_of_first_and_second_degree_are_those_of_the_operator():
    for direct, known in zip(_grads(_gather_add), _grads(torch.ops.anyorder.gather_add), strict=True):
        torch.testing.assert_close(direct, known)
        assert direct.requires_grad == known.requires_grad


@pytest.mark.parametrize("wanted", [0, 1, 2])
def test_only_what_needs_a_gradient_gets_one(wanted):
    leaves = [part.detach().requires_grad_(n == wanted) for n, part in enumerate(_given())]
    _gather_add(leaves[0], leaves[1:], ROWS).sum().backward()
    assert [leaf.grad is not None for leaf in leaves] == [n == wanted for n in range(3)]


def test_lists_that_an_operator_returns_have_gradients():
    grad = _given()[0]
    sums = _scatter_sums(grad, ROWS, [2, 4])
    assert [len(part) for part in sums] == [2, 4]
    torch.stack([part.sum() for part in sums]).sum().backward()
    torch.testing.assert_close(grad.grad[:, 0], torch.tensor([2.0, 2.0, 1.0, 1.0, 2.0], dtype=torch.float64))


def test_nothing_is_kept_without_gradients():
    base, *tables = _given()
    with torch.no_grad():
        assert _gather_add(base, tables, ROWS).grad_fn is None
    for given in (base, torch.nn.Parameter(base.detach())):
        assert type(_gather_add(given, tables, ROWS).grad_fn).__name__ == "_FunctionBackward"


class Named(torch.Tensor):
    """A tensor of another kind."""


def test_tensors_of_other_kinds_go_through_the_dispatcher():
    base, *tables = _given()
    made = _gather_add(base.detach().as_subclass(Named), tables, ROWS)
    assert type(made.grad_fn).__name__ != "_FunctionBackward"


@pytest.mark.parametrize("look", ["profiler", "compiler"])
def test_who_looks_sees_the_operator(look):
    base, *tables = _given()
    if look == "profiler":
        with profile(activities=[ProfilerActivity.CPU]) as found:
            _gather_beside(tables[:1] * 2, ROWS[:1] * 2, ROWS[:1] * 2)
        assert "anyorder::gather_beside" in {event.key for event in found.key_averages()}
    else:
        names = []

        def keep(graph, inputs):
            names.extend(str(node.target) for node in graph.graph.nodes)
            return graph

        torch.compile(lambda *parts: _gather_add(parts[0], parts[1:], ROWS), backend=keep, fullgraph=True)(base, *tables)
        assert "anyorder.gather_add.default" in names
