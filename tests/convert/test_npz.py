"""Features in NPZ files: what is written is read again, and what does not fit is named."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from anyorder import Features, SparseIndexSet
from anyorder.convert import read_npz, write_npz
from anyorder.testing import random_features

GOOD = {"tuples": [[0, 1], [1, 1]], "values": [[1.0], [2.0]], "num_nodes": 2}


@pytest.mark.parametrize("order", [0, 1, 2, 3])
@pytest.mark.parametrize("layout", ["sparse", "complete"])
def test_round_trip(tmp_path, order, layout):
    torch.manual_seed(order)
    x = random_features(order, layout=layout)
    again = read_npz(write_npz(x, tmp_path / "x.npz"))
    assert torch.equal(again.index.tuples, x.index.tuples) and again.index.num_nodes == x.num_nodes
    assert torch.equal(again.index.node_graph, x.index.node_graph) and again.index.num_graphs == x.index.num_graphs
    torch.testing.assert_close(again.rows, x.rows.float())


def test_numbers_that_numpy_does_not_have_are_written_as_single(tmp_path):
    x = Features(SparseIndexSet(torch.tensor([[0]]), num_nodes=1), torch.tensor([[1.5]], dtype=torch.bfloat16))
    assert read_npz(write_npz(x, tmp_path / "x.npz")).rows.tolist() == [[1.5]]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"tuples": None}, "lacks the array 'tuples'"),
        ({"weights": [1]}, "an array 'weights' that is not known"),
        ({"values": [["a"], ["b"]]}, "values must be numbers"),
        ({"values": [1.0, 2.0]}, r"of shape \(entries, channels\), got float64 \(2,\)"),
        ({"tuples": [[0.0, 1.0], [1.0, 1.0]]}, "tuples must be integers"),
        ({"tuples": [[0, 1], [1, 2]]}, r"nodes must lie in 0\.\.1: row 1 is \[1, 2\]"),
        ({"tuples": [[0, 1], [0, 1]]}, "tuples must be distinct"),
        ({"num_nodes": [2]}, "num_nodes must be one integer"),
        ({"node_graph": [0, 1]}, "a tuple must stay within one graph"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, changes, problem):
    arrays = {name: value for name, value in {**GOOD, **changes}.items() if value is not None}
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(ValueError, match=problem):
        read_npz(tmp_path / "x.npz")


def test_other_files_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"x\.npz does not exist"):
        read_npz(tmp_path / "x.npz")
    np.savez(tmp_path / "x.npz", **GOOD)
    (tmp_path / "x.npz").write_bytes((tmp_path / "x.npz").read_bytes()[:-30])
    with pytest.raises(ValueError, match="not a whole NPZ file"):
        read_npz(tmp_path / "x.npz")
    with pytest.raises(ValueError, match=r"must end in \.npz"):
        write_npz(random_features(1), tmp_path / "x.txt")
