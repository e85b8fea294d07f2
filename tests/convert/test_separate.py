"""Batches apart: the inverse of collate."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import strategies
from anyorder import collate
from anyorder.convert import separate
from anyorder.testing import random_features


@strategies.few
@given(st.integers(0, 3).flatmap(lambda order: st.lists(strategies.features(order, max_graphs=1), min_size=1, max_size=4)))
def test_undoes_collate(items):
    parts = separate(collate(items))
    assert len(parts) == len(items)
    for part, item in zip(parts, items):
        assert part.num_nodes == item.num_nodes and part.num_graphs == 1
        assert torch.equal(part.index.tuples, item.index.tuples)
        assert torch.equal(part.rows, item.rows)


@strategies.few
@given(st.integers(0, 3).flatmap(strategies.features))
def test_each_part_is_its_graph_and_nothing_else(x):
    for graph, part in enumerate(separate(x)):
        nodes = (x.index.node_graph == graph).nonzero().flatten()
        assert part.num_nodes == len(nodes)
        named = {(tuple(nodes[list(axes)].tolist()), graph): row for (axes, _), row in strategies.as_dict(part).items()}
        assert named == {key: row for key, row in strategies.as_dict(x).items() if key[1] == graph}


@pytest.mark.parametrize("layout", ["dense", "complete"])
def test_complete_layouts_stay_complete(layout):
    x = random_features(2, layout=layout, num_nodes=5, num_graphs=2)
    parts = separate(x)
    assert {type(part.index) for part in parts} == {type(x.index)}
    torch.testing.assert_close(torch.cat([part.rows for part in parts]), x.rows)


def test_takes_features():
    with pytest.raises(TypeError, match="separate takes Features, got int"):
        separate(3)
