"""Products with a fixed sparse matrix."""

from __future__ import annotations

import pytest
import torch

from anyorder.ops.sparse_matrix import SparseMatrix


def example(seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    dense = torch.randn(6, 5, generator=generator, dtype=torch.float64)
    return dense * (torch.rand(6, 5, generator=generator) < 0.4)


def test_products_and_gradients_are_those_of_the_dense_matrix():
    dense = example()
    matrix = SparseMatrix.of_dense(dense)
    rows = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(matrix @ rows, dense @ rows)
    assert torch.autograd.gradcheck(matrix, (rows,))


def test_entries_of_one_place_add_up_and_no_entries_give_zeros():
    twice = SparseMatrix.build(torch.tensor([1, 1]), torch.tensor([0, 0]), torch.tensor([2.0, 3.0]), (2, 1))
    assert twice(torch.ones(1, 1)).tolist() == [[0.0], [5.0]]
    none = SparseMatrix.of_dense(torch.zeros(3, 2))
    rows = torch.ones(2, 4, requires_grad=True)
    none(rows).sum().backward()
    assert none(rows).shape == (3, 4)
    assert rows.grad is not None
    assert rows.grad.eq(0).all()


def test_dropout_drops_entries_in_training_alone():
    torch.manual_seed(0)
    matrix = SparseMatrix.of_dense(torch.ones(40, 50))
    dropped = matrix.dropped(0.25)
    assert dropped.values.unique().tolist() == pytest.approx([0.0, 4 / 3])
    assert float(dropped.values.eq(0).float().mean()) == pytest.approx(0.25, abs=0.05)
    assert matrix.dropped(0.25, training=False) is matrix
    rows = torch.randn(50, 2, requires_grad=True)
    dropped(rows).sum().backward()
    expected = torch.zeros(40, 50).index_put((dropped.rows, dropped.columns), dropped.values).sum(0)
    torch.testing.assert_close(rows.grad, expected[:, None].expand(50, 2))


def test_what_does_not_fit_is_refused():
    matrix = SparseMatrix.of_dense(torch.eye(3))
    with pytest.raises(ValueError, match=r"matrix of 3 rows, got \(4, 2\)"):
        matrix(torch.ones(4, 2))
    with pytest.raises(ValueError, match=r"columns must lie in 0\.\.1, got 0 to 2"):
        SparseMatrix.build(torch.tensor([0, 1]), torch.tensor([0, 2]), torch.ones(2), (2, 2))
    with pytest.raises(ValueError, match="three lists of one length"):
        SparseMatrix.build(torch.tensor([0]), torch.tensor([0, 1]), torch.ones(2), (2, 2))
