from __future__ import annotations

import numpy as np
import pytest
import torch

from anyorder.experiments.hyperedges.cooccurrence import cooccurrence_features
from anyorder.experiments.hyperedges.data import TypedHyperedges
from anyorder.experiments.hyperedges.sparse_products import Pattern, dots_at, sparse_times_dense
from anyorder.experiments.hyperedges.typed_autoencoder import TypedAutoencoder
from learning import Fit, assert_learns


def hyperedges(sizes: tuple[int, ...] = (6, 5, 4), count: int = 20, seed: int = 0) -> TypedHyperedges:
    generator = np.random.default_rng(seed)
    used = tuple(size - 1 for size in sizes)  # the last node of every type occurs nowhere
    train = generator.integers(0, used, size=(count, len(sizes))) + np.cumsum([0, *sizes[:-1]])
    return TypedHyperedges(sizes=sizes, train=train, test=train[:0])


@pytest.fixture
def double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def dense_reference(model: TypedAutoencoder, data: TypedHyperedges) -> tuple[torch.Tensor, torch.Tensor]:
    """Each type's autoencoder on its dense matrix, by the formulas."""
    embeddings, loss, start = [], torch.zeros(()), 0
    for kind, matrix in enumerate(cooccurrence_features(data)):
        x = torch.from_numpy(matrix.dense()).to(model.weight.dtype)
        weight = model.weight[start : start + x.shape[1]]
        hidden = torch.tanh(x @ weight + model.bias[kind])
        error = (hidden @ weight.T + model.column_bias[start : start + x.shape[1]] - x).square() * (x != 0)
        loss = loss + (error.sum(1) / (x != 0).sum(1).clamp(min=1)).mean()
        normed = torch.nn.functional.layer_norm(hidden, hidden.shape[-1:])
        embeddings.append(normed * model.norm_weight[kind] + model.norm_bias[kind])
        start += x.shape[1]
    return torch.cat(embeddings), loss


def randomise(model: torch.nn.Module) -> None:
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("sizes", [(6, 5), (6, 5, 4), (3, 2, 4, 3)])
def test_nonzeros_alone_give_what_dense_matrices_give(sizes):
    torch.manual_seed(0)
    data = hyperedges(sizes)
    model = TypedAutoencoder(cooccurrence_features(data), channels=8).eval()
    randomise(model)
    embeddings, loss = model.with_loss()
    expected, expected_loss = dense_reference(model, data)
    torch.testing.assert_close(embeddings, expected)
    torch.testing.assert_close(loss, expected_loss)
    gradients = torch.autograd.grad(embeddings.square().sum() + loss, list(model.parameters()))
    references = torch.autograd.grad(expected.square().sum() + expected_loss, list(model.parameters()))
    for gradient, reference in zip(gradients, references, strict=True):
        torch.testing.assert_close(gradient, reference)


@pytest.mark.usefixtures("double")
def test_some_nodes_give_the_rows_of_all():
    torch.manual_seed(0)
    data = hyperedges()
    model = TypedAutoencoder(cooccurrence_features(data), channels=8).eval()
    randomise(model)
    nodes = torch.tensor([7, 0, 14, 5])
    torch.testing.assert_close(model(nodes), model()[nodes])
    everything = torch.arange(data.num_nodes)
    torch.testing.assert_close(model.reconstruction_loss(everything), model.reconstruction_loss())
    gradient = torch.autograd.grad(model(everything).sum(), model.weight)[0]
    torch.testing.assert_close(gradient, torch.autograd.grad(model().sum(), model.weight)[0])


@pytest.mark.usefixtures("double")
def test_sparse_products_have_the_right_gradients():
    torch.manual_seed(0)
    pattern = Pattern.of(torch.tensor([0, 2, 2, 5]), torch.tensor([0, 3, 1, 2, 3]), width=5)
    values = torch.randn(5)
    dense = torch.randn(5, 3, requires_grad=True)
    left = torch.randn(3, 3, requires_grad=True)
    assert torch.autograd.gradcheck(lambda d: sparse_times_dense(values, d, pattern), dense)
    assert torch.autograd.gradcheck(lambda a, b: dots_at(a, b, pattern), (left, dense))


def test_nodes_that_never_occur_are_finite_and_cost_nothing():
    data = hyperedges()
    model = TypedAutoencoder(cooccurrence_features(data), channels=8)
    lonely = torch.tensor([5, 10, 14])
    embeddings, loss = model.with_loss(lonely)
    (embeddings.sum() + loss).backward()
    assert embeddings.isfinite().all() and loss.item() == 0
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_dropout_acts_in_training_alone():
    model = TypedAutoencoder(cooccurrence_features(hyperedges()), channels=8)
    torch.manual_seed(0)
    assert not torch.equal(model(), model())
    model.eval()
    assert torch.equal(model(), model())


@pytest.mark.numeric
def test_training_lowers_the_reconstruction_loss():
    features = cooccurrence_features(hyperedges(count=40))

    def make() -> Fit:
        model = TypedAutoencoder(features, channels=16)
        return model, model.reconstruction_loss

    assert_learns(make, lambda first: 0.5 * first, steps=100, rate=1e-2)


def test_features_are_no_part_of_the_state():
    model = TypedAutoencoder(cooccurrence_features(hyperedges()), channels=8)
    assert set(model.state_dict()) == {"weight", "column_bias", "bias", "norm_weight", "norm_bias"}
    with pytest.raises(ValueError, match="at least one node type"):
        TypedAutoencoder(())
