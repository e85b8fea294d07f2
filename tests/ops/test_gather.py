"""Gathers that add to an output, against the plain operations."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from anyorder import EquivariantLinear, Features, SparseIndexSet
from anyorder.layouts import Spread
from anyorder.ops.backends import use_backend
from anyorder.ops.gather import FEW, add_product, add_spread, beside, product, read_rows


def results(backend, base, tables, reads):
    leaves = [part.clone().requires_grad_() for part in (*([] if base is None else [base]), *tables)]
    given_base, given_tables = (None, leaves) if base is None else (leaves[0], leaves[1:])
    parts = [(table, Spread.build(rows, len(table))) for table, rows in zip(given_tables, reads)]
    with use_backend(backend):
        out = add_spread(given_base, parts)
        if out.requires_grad:  # not where there was nothing to read
            out.mul(torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)).sum().backward()
    return [out.detach(), *[leaf.grad if leaf.grad is not None else torch.zeros_like(leaf) for leaf in leaves]]


@settings(deadline=None)  # compiles
@given(st.data())
def test_equals_gathers_and_sums(data):
    count, width, tables = (data.draw(st.integers(a, b)) for a, b in ((0, 7), (1, 5), (1, 3)))
    sizes = data.draw(st.lists(st.integers(0, 4), min_size=tables, max_size=tables))
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 99)))
    draw = {"generator": generator, "dtype": torch.float64}
    reads = [torch.randint(-1, size, (count,), generator=generator) for size in sizes]
    values = [torch.randn(size, width, **draw) for size in sizes]
    base = torch.randn(count, width, **draw) if data.draw(st.booleans()) else None
    expected = results("reference", base, values, reads)
    for got, right in zip(results("numba", base, values, reads), expected, strict=True):
        torch.testing.assert_close(got, right)
    with torch.no_grad(), use_backend("numba"):  # written over the base
        parts = [(table, Spread.build(rows, len(table))) for table, rows in zip(values, reads)]
        torch.testing.assert_close(add_spread(None if base is None else base.clone(), parts), expected[0])


@pytest.mark.parametrize("with_base", [True, False])
def test_gradcheck_and_opcheck(with_base):
    base = torch.randn(5, 3, dtype=torch.float64, requires_grad=True) if with_base else None
    tables = [torch.randn(n, 3, dtype=torch.float64, requires_grad=True) for n in (2, 4)]
    rows = [torch.tensor([0, 1, -1, 1, 0]), torch.tensor([3, 3, 3, -1, 0])]
    torch.library.opcheck(torch.ops.anyorder.gather_add, (base, tables, rows))
    torch.library.opcheck(torch.ops.anyorder.scatter_sums, (torch.randn(5, 3), rows, [2, 4]))

    def added(*parts):
        given_base, given_tables = (parts[0], parts[1:]) if with_base else (None, parts)
        return torch.ops.anyorder.gather_add(given_base, list(given_tables), rows)

    assert torch.autograd.gradcheck(added, tuple([base] * with_base + tables))


@pytest.mark.numeric
def test_threads_do_not_change_a_bit():
    table, rows = torch.randn(50, 33), torch.randint(-1, 50, (4000,))
    found = []
    threads = torch.get_num_threads()
    try:
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            found.append(results("numba", torch.ones(4000, 33), [table], [rows]))
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(a, b) for other in found[1:] for a, b in zip(found[0], other, strict=True))


def side_by_side(backend, tables, reads):
    leaves = [part.clone().requires_grad_() for part in tables]
    parts = [(table, Spread.build(rows, len(table), one_to_one=True)) for table, rows in zip(leaves, reads)]
    with use_backend(backend):
        out = beside(parts)
        if out.requires_grad:  # not where there was nothing to read
            out.mul(torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)).sum().backward()
    return [out.detach(), *[leaf.grad if leaf.grad is not None else torch.zeros_like(leaf) for leaf in leaves]]


@settings(deadline=None)  # compiles
@given(st.data())
def test_side_by_side_equals_gathers(data):
    count, width, tables = (data.draw(st.integers(a, b)) for a, b in ((0, 7), (1, 5), (1, 3)))
    sizes = data.draw(st.lists(st.integers(0, 7), min_size=tables, max_size=tables))
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 99)))
    reads = []
    for size in sizes:  # no row twice: a part of a permutation, -1 beyond
        rows = torch.full((count,), -1)
        found = torch.randperm(max(size, count), generator=generator)[:count]
        rows[: len(found)] = torch.where(found < size, found, -1)
        reads.append(rows)
    values = [torch.randn(size, width, generator=generator, dtype=torch.float64) for size in sizes]
    for got, right in zip(side_by_side("numba", values, reads), side_by_side("reference", values, reads), strict=True):
        torch.testing.assert_close(got, right)


def test_gradcheck_and_opcheck_side_by_side():
    tables = [torch.randn(n, 3, dtype=torch.float64, requires_grad=True) for n in (2, 4)]
    spreads = [Spread.build(torch.tensor(rows), n, one_to_one=True) for rows, n in (([1, -1, 0], 2), ([3, 0, 2], 4))]
    rows, inverses = [spread.signed for spread in spreads], [spread.inverse for spread in spreads]
    torch.library.opcheck(torch.ops.anyorder.gather_beside, (tables, rows, inverses))
    torch.library.opcheck(torch.ops.anyorder.gather_part, (torch.randn(5, 6), torch.tensor([4, -1]), 2, 3))
    assert torch.autograd.gradcheck(lambda *given: beside([*zip(given, spreads)]), tables)


@pytest.mark.parametrize(("order_in", "order_out"), [(2, 2), (2, 1), (1, 2), (2, 0)])
def test_linear_layers_have_second_derivatives(order_in, order_out):
    torch.manual_seed(0)
    nodes = torch.arange(5)
    edges = torch.cat([torch.stack([nodes, (nodes + 1) % 5], 1), nodes[:, None].expand(-1, 2)])
    index = SparseIndexSet(edges if order_in == 2 else nodes[:, None], num_nodes=5)
    target = SparseIndexSet(edges, num_nodes=5) if (order_in, order_out) == (1, 2) else None
    layer = EquivariantLinear(order_in=order_in, order_out=order_out, channels_in=2, channels_out=2).double()
    rows = torch.randn(index.num_entries, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: layer(Features(index, x), target).rows.tanh(), (rows,), fast_mode=True)


class TestReadRows:
    def test_the_identity_copies_nothing(self):
        values = torch.ones(3, 2)
        assert read_rows(values, Spread.build(torch.arange(3), 3)) is values

    def test_missing_rows_are_zero(self):
        assert read_rows(torch.tensor([[3.0], [4.0]]), Spread.build(torch.tensor([1, -1]), 2)).tolist() == [[4.0], [0.0]]
        assert read_rows(torch.ones(0, 2, 3), Spread.build(torch.tensor([-1, -1]), 0)).shape == (2, 2, 3)

    def test_a_missing_row_stops_gradients_and_not_numbers_of_others(self):
        values = torch.tensor([[torch.inf], [4.0]], requires_grad=True)
        out = read_rows(values, Spread.build(torch.tensor([-1, 1]), 2))
        out.sum().backward()
        assert out.tolist() == [[0.0], [4.0]] and values.grad.tolist() == [[0.0], [1.0]]


@pytest.mark.parametrize("columns", [1, 8, 9])
@pytest.mark.parametrize("channels", [5, 40])
@pytest.mark.parametrize("few", [True, False])
def test_a_product_is_the_same_however_its_matrix_is_laid_out(columns, channels, few):
    count = 3 if few else FEW // channels + 1
    given = [torch.randn(*shape, dtype=torch.float64) for shape in ((count, channels), (channels, columns), (columns,))]
    total = torch.randn(count, columns, dtype=torch.float64)
    scale = torch.linspace(-1, 1, total.numel(), dtype=torch.float64).view_as(total)
    for mine, plain in (
        (lambda rows, weight, bias: product(rows, weight, bias), lambda rows, weight, bias: rows @ weight + bias),
        (lambda rows, weight, bias: product(rows, weight), lambda rows, weight, bias: rows @ weight),
        (lambda rows, weight, bias: add_product(total, rows, weight), lambda rows, weight, bias: total + rows @ weight),
    ):
        leaves = [[part.clone().requires_grad_() for part in given] for _ in range(2)]
        results = [call(*parts) for call, parts in zip((mine, plain), leaves)]
        torch.testing.assert_close(*results, rtol=1e-12, atol=1e-12)
        grads = [
            torch.autograd.grad((result * scale).square().sum(), parts, allow_unused=True, create_graph=True)
            for result, parts in zip(results, leaves)
        ]
        second = [
            torch.autograd.grad(sum(grad.square().sum() for grad in some if grad is not None), parts[:2])
            for some, parts in zip(grads, leaves)
        ]
        for got, right in [*zip(*grads), *zip(*second)]:
            assert (got is None) == (right is None)
            if right is not None:
                torch.testing.assert_close(got, right, rtol=1e-9, atol=1e-9)
