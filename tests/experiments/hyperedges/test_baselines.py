from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from anyorder.experiments.hyperedges.baselines import DHNE, HyperSAGNN, MeanPairSimilarity, MinPairSimilarity, logit_of_mean
from anyorder.experiments.hyperedges.cooccurrence import cooccurrence_features
from anyorder.experiments.hyperedges.data import TypedHyperedges
from anyorder.experiments.hyperedges.negatives import NegativeSampler
from anyorder.experiments.hyperedges.tuples import offsets_of
from anyorder.experiments.hyperedges.typed_autoencoder import TypedAutoencoder

SIZES = (6, 5, 4)


def hyperedges(sizes: tuple[int, ...] = SIZES, count: int = 20) -> TypedHyperedges:
    train = np.random.default_rng(0).integers(0, sizes, size=(count, len(sizes))) + np.array(offsets_of(sizes))
    return TypedHyperedges(sizes=sizes, train=train, test=train[:0])


def models(data: TypedHyperedges) -> dict[str, nn.Module]:
    torch.manual_seed(0)
    features = cooccurrence_features(data)
    embeddings = torch.randn(data.num_nodes, 64)
    return {
        "Hyper-SAGNN-E": HyperSAGNN(TypedAutoencoder(features)),
        "Hyper-SAGNN-W": HyperSAGNN(nn.Embedding.from_pretrained(embeddings, freeze=False)),
        "DHNE": DHNE(TypedAutoencoder(features), order=data.order),
        "mean": MeanPairSimilarity(embeddings),
        "min": MinPairSimilarity(embeddings),
    }


@pytest.mark.parametrize("sizes", [(6, 5), SIZES, (3, 2, 4, 3)])
@pytest.mark.parametrize("name", ["Hyper-SAGNN-E", "Hyper-SAGNN-W", "DHNE", "mean", "min"])
def test_every_row_scores_tuples_of_any_order(name, sizes):
    data = hyperedges(sizes)
    model = models(data)[name].eval()
    tuples = torch.tensor(data.train)
    logits = model(tuples)
    assert logits.shape == (len(tuples),) and logits.isfinite().all()
    torch.testing.assert_close(model(tuples[3:5]), logits[3:5], msg="a tuple does not see its neighbours in the batch")


@pytest.mark.parametrize("name", ["Hyper-SAGNN-E", "Hyper-SAGNN-W", "mean", "min"])
def test_the_order_within_a_tuple_does_not_matter(name):
    data = hyperedges()
    model = models(data)[name].double().eval()
    tuples = torch.tensor(data.train)
    for order in itertools.permutations(range(3)):
        torch.testing.assert_close(model(tuples[:, list(order)]), model(tuples))


def test_dhne_reads_types_by_position():
    model = models(hyperedges())["DHNE"].eval()
    tuples = torch.tensor(hyperedges().train)
    assert not torch.allclose(model(tuples.flip(1)), model(tuples))
    with pytest.raises(ValueError, match="expected tuples of 3 nodes, got 2"):
        model(tuples[:, :2])


def test_hyper_sagnn_matches_the_definition():
    torch.manual_seed(0)
    data = hyperedges()
    model = models(data)["Hyper-SAGNN-W"].double().eval()
    row = torch.tensor(data.train[0])
    x = model.norm(model.embed(row))
    query, key, value = model.project(x).reshape(3, 3, 8, 16).permute(1, 0, 2, 3)
    scores = []
    for i in range(3):
        others = [j for j in range(3) if j != i]
        heads = []
        for head in range(8):
            logits = torch.stack([query[i, head] @ key[j, head] / 4 for j in others])
            heads.append(sum(a * value[j, head] for a, j in zip(logits.softmax(0), others, strict=True)))
        dynamic = model.dynamic_norm(model.dynamic(model.merge(torch.cat(heads))))
        static = model.static_norm(model.static(x[i]))
        scores.append(torch.sigmoid(model.output((dynamic - static) ** 2)))
    expected = torch.logit(torch.stack(scores).mean())
    torch.testing.assert_close(model(row[None])[0], expected)


def test_hyper_sagnn_needs_another_node():
    with pytest.raises(ValueError, match="at least two nodes"):
        models(hyperedges())["Hyper-SAGNN-W"](torch.tensor([[0]]))


def test_the_logit_of_a_mean_stays_finite():
    extreme = torch.tensor([[200.0, 200.0], [-200.0, -200.0], [200.0, -200.0]], requires_grad=True)
    logits = logit_of_mean(extreme)
    torch.testing.assert_close(logits, torch.tensor([200.0, -200.0, 0.0]))
    logits.sum().backward()
    assert extreme.grad.isfinite().all()


def test_auxiliary_loss_is_that_of_the_autoencoder():
    data = hyperedges()
    rows = models(data)
    tuples = torch.tensor(data.train)
    for name in ("Hyper-SAGNN-E", "DHNE"):
        model = rows[name].eval()
        logits, loss = model.with_auxiliary_loss(tuples)
        torch.testing.assert_close(logits, model(tuples))
        torch.testing.assert_close(loss, model.auxiliary_loss(torch.unique(tuples)))
        torch.testing.assert_close(model.auxiliary_loss(), model.embed.reconstruction_loss())
    walk = rows["Hyper-SAGNN-W"]
    assert walk.with_auxiliary_loss(tuples)[1].item() == walk.auxiliary_loss().item() == 0


def test_pair_similarities_are_cosines():
    embeddings = torch.tensor([[2.0, 0.0], [0.0, 3.0], [1.0, 1.0]])
    tuples = torch.tensor([[0, 1, 2]])
    cosine = 0.5**0.5
    torch.testing.assert_close(MeanPairSimilarity(embeddings)(tuples), torch.tensor([2 * cosine / 3]))
    torch.testing.assert_close(MinPairSimilarity(embeddings)(tuples), torch.tensor([0.0]))


def blocks(groups: int = 3, width: int = 6) -> TypedHyperedges:
    """Hyperedges whose nodes belong to one group; a quarter of them for the test."""
    generator = np.random.default_rng(0)
    draws = generator.integers(0, width, size=(300, 3)) + width * generator.integers(0, groups, size=(300, 1))
    tuples = np.unique(draws + np.array(offsets_of((groups * width,) * 3)), axis=0)
    tuples = generator.permutation(tuples)
    cut = len(tuples) * 3 // 4
    return TypedHyperedges(sizes=(groups * width,) * 3, train=tuples[:cut], test=tuples[cut:])


@pytest.mark.numeric
@pytest.mark.parametrize("build", [HyperSAGNN, lambda embed: DHNE(embed, order=3)], ids=["Hyper-SAGNN-E", "DHNE"])
def test_training_finds_the_groups_of_unseen_hyperedges(build):
    torch.manual_seed(0)
    data, generator = blocks(), np.random.default_rng(0)
    model = build(TypedAutoencoder(cooccurrence_features(data)))
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
    sampler = NegativeSampler(data.known("train"))
    for _ in range(60):
        rows = torch.from_numpy(np.concatenate([data.train, sampler(data.train, generator)]))
        target = (torch.arange(len(rows)) < len(data.train)).float()
        logits, loss = model.with_auxiliary_loss(rows)
        loss = 0.01 * loss + nn.functional.binary_cross_entropy_with_logits(logits, target)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    negatives = NegativeSampler(data.known("test"))(data.test, generator)
    with torch.no_grad():
        model.eval()
        positive, negative = model(torch.tensor(data.test)), model(torch.from_numpy(negatives))
    auc = (positive[:, None] > negative[None]).float().mean().item()
    assert auc > 0.9
