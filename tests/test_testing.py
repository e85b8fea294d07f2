"""The public test helper passes what is equivariant and fails what is not."""

from __future__ import annotations

import pytest
import torch

from anyorder import EquivariantLinear, Features, SparseIndexSet
from anyorder.testing import assert_equivariant, random_features, random_index_set

LAYOUTS = ["sparse", "dense", "complete"]


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def linear(k, l):
    torch.manual_seed(0)
    return EquivariantLinear(order_in=k, order_out=l, channels_in=3, channels_out=2).double()


def reads_node_numbers(x):
    return x.with_rows(x.rows + 0.1 * x.index.tuples[:, :1])


def reads_entry_order(x):
    return x.with_rows(x.rows + 0.1 * torch.arange(len(x.rows))[:, None])


def cumulates(x):
    return x.with_rows(x.rows.cumsum(0))


def keeps_first_nodes(x):
    """Its output stands on tuples chosen by their number, not by the input."""
    index = SparseIndexSet(torch.tensor([[0]]), num_nodes=x.num_nodes, node_graph=x.index.node_graph)
    return Features(index, x.rows[:1] * 0)


def drops_entries(x):
    """How many entries its output has depends on the numbers of nodes."""
    kept = x.index.tuples[:, 0] > x.num_nodes // 2
    nodes = {"num_nodes": x.num_nodes, "node_graph": x.index.node_graph, "num_graphs": x.num_graphs}
    return Features(SparseIndexSet(x.index.tuples[kept], **nodes), x.rows[kept])


def gives_nan_in_one_place(x):
    rows = x.rows.clone()
    rows[0] = torch.nan
    return x.with_rows(rows)


class TestPasses:
    @pytest.mark.parametrize("layout", LAYOUTS)
    @pytest.mark.parametrize(("k", "l"), [(1, 1), (1, 2), (2, 1), (2, 2), (2, 0), (3, 2)])
    def test_equivariant_layers(self, k, l, layout):
        x = random_features(k, layout=layout)
        target = random_index_set(l, like=x.index) if layout == "sparse" else None
        assert_equivariant(linear(k, l), x, target)

    def test_what_works_on_each_entry(self):
        assert_equivariant(lambda x: x.with_rows(x.rows.relu()), random_features(2))

    def test_no_entries(self):
        assert_equivariant(linear(2, 2), random_features(2, density=0.0))

    def test_input_as_its_own_target(self):
        x = random_features(2)
        assert_equivariant(linear(2, 2), x, x.index)


class TestFails:
    @pytest.mark.parametrize("layout", LAYOUTS)
    @pytest.mark.parametrize("order", [1, 2, 3])
    def test_a_layer_that_reads_positions(self, order, layout):
        with pytest.raises(AssertionError, match=r"after renaming the nodes, output entry .* differs by"):
            assert_equivariant(reads_node_numbers, random_features(order, layout=layout))

    @pytest.mark.parametrize("layer", [reads_entry_order, cumulates])
    @pytest.mark.parametrize("order", [1, 2])
    def test_a_layer_that_depends_on_the_order_of_entries(self, layer, order):
        with pytest.raises(AssertionError, match=r"after reordering the entries, output entry .* differs by"):
            assert_equivariant(layer, random_features(order))

    @pytest.mark.parametrize("layout", ["dense", "complete"])
    def test_a_grid_whose_cells_are_read_by_place(self, layout):
        with pytest.raises(AssertionError, match="not equivariant: after renaming the nodes"):
            assert_equivariant(cumulates, random_features(2, layout=layout))

    def test_an_output_on_other_tuples(self):
        with pytest.raises(AssertionError, match=r"after renaming the nodes, output entry \[0\] has no counterpart"):
            assert_equivariant(keeps_first_nodes, random_features(1, density=1.0))

    def test_an_output_of_another_size(self):
        with pytest.raises(AssertionError, match="renaming the nodes changed the number of output entries from"):
            assert_equivariant(drops_entries, random_features(1, density=0.7, num_nodes=10))

    def test_numbers_that_are_no_numbers(self):
        with pytest.raises(AssertionError, match="not equivariant"):
            assert_equivariant(gives_nan_in_one_place, random_features(2))

    def test_a_difference_larger_than_the_tolerance_alone(self):
        def nearly(x):
            return x.with_rows(x.rows + 1e-6 * x.index.tuples[:, :1])

        x = random_features(2)
        assert_equivariant(nearly, x, tolerance=1e-4)
        with pytest.raises(AssertionError, match="more than 1e-09"):
            assert_equivariant(nearly, x)
        single = x.to(torch.float32)
        assert_equivariant(nearly, single)


class TestRandomInputs:
    @pytest.mark.parametrize("layout", LAYOUTS)
    @pytest.mark.parametrize("order", range(4))
    def test_have_the_order_channels_and_graphs_asked_for(self, order, layout):
        x = random_features(order, channels=5, num_nodes=7, num_graphs=3, layout=layout)
        assert (x.order, x.channels, x.num_nodes, x.num_graphs) == (order, 5, 7, 3)
        assert x.rows.isfinite().all() and x.dtype == torch.float64

    def test_repeat_with_a_seed_and_change_with_another(self):
        def draw(seed):
            return random_features(2, generator=torch.Generator().manual_seed(seed))

        one, same, other = draw(1), draw(1), draw(2)
        assert torch.equal(one.rows, same.rows) and torch.equal(one.index.tuples, same.index.tuples)
        assert not torch.equal(one.rows, other.rows)

    def test_a_target_is_on_the_nodes_of_another(self):
        source = random_index_set(2)
        target = random_index_set(3, like=source, density=0.3)
        assert torch.equal(target.node_graph, source.node_graph) and target.num_entries == round(0.3 * 2 * 27)
        assert source.plan(target)
