"""The layers of the set-to-graph baselines against their formulas, one set and one pair at a time."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor, nn

from anyorder.experiments.set_to_graph.baselines.knn_gnn import GraphConvolution, KnnGraphNetwork, nearest_neighbours
from anyorder.experiments.set_to_graph.baselines.pairs import PairBasis, PairHead, Pooling, mlp
from anyorder.experiments.set_to_graph.baselines.s2g import DeepSetLayer, PointAttention, SetToGraphNetwork
from anyorder.experiments.set_to_graph.baselines.siamese import Siamese, SiameseTriplet, draw_triplets
from anyorder.experiments.set_to_graph.sets import SetBatch

SIZES = (4, 1, 3)


@pytest.fixture(autouse=True)
def _double_precision_and_seed() -> object:
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def make_batch(sizes: tuple[int, ...] = SIZES, channels: int = 5) -> SetBatch:
    targets = (torch.rand(sum(size**2 for size in sizes)) < 0.5).double()
    return SetBatch(torch.randn(sum(sizes), channels), torch.tensor(sizes), targets)


def parts(batch: SetBatch) -> list[Tensor]:
    return [*torch.split(batch.points, batch.sizes.tolist())]


@pytest.mark.parametrize("sizes", [SIZES, (3, 3)], ids=["ragged", "same-size"])
@pytest.mark.parametrize("pooling", Pooling)
@pytest.mark.parametrize("basis", PairBasis)
def test_pair_head_is_an_mlp_on_the_concatenated_basis(basis: PairBasis, pooling: Pooling, sizes: tuple[int, ...]) -> None:
    batch = make_batch(sizes)
    head = PairHead(channels_in=5, widths=(7, 6), basis=basis, pooling=pooling)
    whole = nn.Sequential(head.spread, *head.rest)
    expected = []
    for points in parts(batch):
        pooled = points.mean(0) if pooling is Pooling.MEAN else points.sum(0)
        for i, j in product(range(len(points)), repeat=2):
            loop = float(i == j)
            maps = [points[j], points[i], pooled, loop * points[i], loop * pooled]
            expected.append(whole(torch.cat(maps[: basis.num_maps]))[0])
    torch.testing.assert_close(head(batch.points, batch), torch.stack(expected))
    torch.testing.assert_close(head.diagonal(batch.points, batch), torch.stack(expected)[batch.diagonal])


def test_pair_head_needs_a_hidden_layer() -> None:
    with pytest.raises(ValueError, match="at least one hidden layer"):
        PairHead(channels_in=2, widths=())


def test_mlp_with_batch_norm_has_none_at_the_end() -> None:
    names = [type(layer).__name__ for layer in mlp((2, 4, 3), batch_norm=True)]
    assert names == ["Linear", "BatchNorm1d", "ReLU", "Linear"]


class TestDeepSet:
    def test_attention_is_a_softmax_average_of_its_own_set(self) -> None:
        batch, layer = make_batch(channels=20), PointAttention(channels=20)
        expected = []
        for points in parts(batch):
            query, key = layer.query(points).tanh(), layer.key(points)
            assert query.shape[1] == 2
            expected.append((query @ key.T / 2**0.5).softmax(1) @ points)
        torch.testing.assert_close(layer(batch.points, batch), torch.cat(expected))

    @pytest.mark.parametrize("attention", [False, True])
    def test_layer_is_its_formula(self, attention: bool) -> None:
        batch, layer = make_batch(), DeepSetLayer(channels_in=5, channels_out=3, attention=attention)
        average = torch.cat([points.mean(0).expand_as(points) for points in parts(batch)])
        if layer.attention is not None:
            average = layer.attention(batch.points, batch)
        raw = layer.own(batch.points) + layer.centred(batch.points - average)
        torch.testing.assert_close(layer(batch.points, batch), raw / raw.square().sum(1, keepdim=True).sqrt())

    def test_the_own_diagonal_changes_nothing_else(self) -> None:
        batch = make_batch()
        model = SetToGraphNetwork(channels_in=5, widths=(6, 4), head=(8,), basis=PairBasis.FULL)
        assert model.diagonal_head is not None
        before = model(batch)
        with torch.no_grad():
            model.diagonal_head.spread.bias.add_(1)
        moved = (model(batch) - before).abs() > 1e-9
        assert torch.equal(moved, batch.is_diagonal)


class TestSiamese:
    def test_a_logit_depends_on_its_two_ends_alone(self) -> None:
        batch = make_batch((5,))
        model = Siamese(channels_in=5, widths=(6, 4), head=(8,)).eval()
        points = batch.points.clone()
        points[3] += 1
        same = torch.isclose(model(batch), model(SetBatch(points, batch.sizes)), rtol=1e-10)
        row, column = batch.pair_index
        assert torch.equal(same, (row != 3) & (column != 3))

    def test_batch_norm_sees_every_point_once_and_no_padding(self) -> None:
        batch, model = make_batch(), Siamese(channels_in=5, widths=(6, 4), head=(8,)).train()
        model(batch)
        first, norm = model.embed[0], model.embed[1]
        assert isinstance(norm, nn.BatchNorm1d) and norm.running_mean is not None
        torch.testing.assert_close(norm.running_mean, 0.1 * first(batch.points).mean(0))

    def test_the_triplet_model_decides_by_squared_distance(self) -> None:
        batch, model = make_batch(), SiameseTriplet(channels_in=5, widths=(6, 4))
        embedded = model.embed(batch.points)
        row, column = batch.pair_index
        distance = (embedded[row] - embedded[column]).square().sum(1)
        torch.testing.assert_close(model(batch), 1 - distance)
        assert torch.equal(model(batch) >= 0, distance <= 1)


class TestTriplets:
    def test_triplets_are_distinct_and_of_one_set(self) -> None:
        batch = make_batch((5, 2, 3, 1))
        triplets = torch.stack(draw_triplets(batch, 50, torch.Generator().manual_seed(0)))
        assert triplets.shape == (3, 100)
        assert (batch.node_set[triplets] == batch.node_set[triplets[0]]).all()
        assert all((triplets[a] != triplets[b]).all() for a, b in ((0, 1), (0, 2), (1, 2)))

    def test_all_ordered_triples_are_equally_likely(self) -> None:
        triplets = torch.stack(draw_triplets(make_batch((4,)), 24_000, torch.Generator().manual_seed(0)))
        _, counts = triplets.unique(dim=1, return_counts=True)
        assert len(counts) == 24
        assert counts.min() > 850 and counts.max() < 1150

    def test_loss_is_the_mean_hinge_of_telling_triplets(self) -> None:
        batch = make_batch((5, 3))
        model = SiameseTriplet(channels_in=5, widths=(6, 4), num_triplets=30)
        loss = model.triplet_loss(batch, torch.Generator().manual_seed(3))
        assert batch.targets is not None
        related = {(int(i), int(j)): float(t) for (i, j), t in zip(batch.pair_index.T, batch.targets, strict=True)}
        embedded, hinges = model.embed(batch.points), []
        for i, j, k in zip(*draw_triplets(batch, 30, torch.Generator().manual_seed(3)), strict=True):
            near, far = (j, k) if related[int(i), int(j)] else (k, j)
            if related[int(i), int(near)] > related[int(i), int(far)]:
                distances = [(embedded[i] - embedded[end]).square().sum() for end in (near, far)]
                hinges.append((2 + distances[0] - distances[1]).clamp(min=0))
        assert 0 < len(hinges) < 60
        torch.testing.assert_close(loss, torch.stack(hinges).mean())

    def test_sets_that_teach_nothing_cost_nothing(self) -> None:
        model = SiameseTriplet(channels_in=5, widths=(6, 4))
        loss = model.triplet_loss(make_batch((2, 1)))
        loss.backward()
        assert loss.item() == 0

    def test_training_by_triplets_learns_clusters(self) -> None:
        points = torch.tensor([[0.0, 0], [0, 1], [5, 5], [5, 4], [0, 0.5], [4, 4]])
        near = (points[:, 0] < 2)[:, None] == (points[:, 0] < 2)[None]
        batch = SetBatch(points, torch.tensor([6]), near.double().flatten())
        model, generator = SiameseTriplet(channels_in=2, widths=(16, 2)), torch.Generator().manual_seed(0)
        optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(150):
            optimiser.zero_grad()
            model.triplet_loss(batch, generator).backward()
            optimiser.step()
        assert model.triplet_loss(batch, generator).item() < 0.01

    def test_targets_are_needed(self) -> None:
        batch = SetBatch(torch.zeros(3, 5), torch.tensor([3]))
        with pytest.raises(ValueError, match="needs targets"):
            SiameseTriplet(channels_in=5, widths=(2,)).triplet_loss(batch)


class TestKnn:
    @pytest.mark.parametrize("number", [0, 1, 2, 5])
    def test_neighbours_are_the_nearest_others(self, number: int) -> None:
        batch = make_batch((6, 2, 1, 8))
        found = nearest_neighbours(batch, number)
        for index, points in enumerate(parts(batch)):
            for i, point in enumerate(points):
                nearest = (points - point).norm(dim=1).argsort()[1 : number + 1]
                assert sorted(found[index, i].nonzero().flatten().tolist()) == sorted(nearest.tolist())
        assert not found[~batch.mask].any()

    def test_convolution_agrees_with_pyg(self) -> None:
        graph_convolution = pytest.importorskip("torch_geometric.nn").GraphConv(5, 3)
        batch, layer = make_batch((6, 2, 8)), GraphConvolution(channels_in=5, channels_out=3)
        graph_convolution.lin_rel.load_state_dict(layer.neighbours.state_dict())
        graph_convolution.lin_root.load_state_dict(layer.own.state_dict())
        adjacency = nearest_neighbours(batch, 3)
        which, target, source = adjacency.nonzero().T
        edges = torch.stack((source, target)) + batch.offsets[which]
        torch.testing.assert_close(layer(batch.points, adjacency, batch), graph_convolution(batch.points, edges))

    def test_logits_are_inner_products_and_without_neighbours_points_are_alone(self) -> None:
        batch, model = make_batch((5,)), KnnGraphNetwork(channels_in=5, widths=(6, 4), neighbours=0)
        logits = model(batch).view(5, 5)
        torch.testing.assert_close(logits, logits.T)
        assert (logits.diagonal() >= 0).all()
        assert torch.linalg.matrix_rank(logits) <= 4
        points = batch.points.clone()
        points[3] += 1
        same = torch.isclose(logits, model(SetBatch(points, batch.sizes)).view(5, 5), rtol=1e-10)
        assert same[:3, :3].all() and same[4, 4] and not same[3].any()

    def test_with_neighbours_they_are_not(self) -> None:
        batch, model = make_batch((5,)), KnnGraphNetwork(channels_in=5, widths=(6, 4), neighbours=4)
        points = batch.points.clone()
        points[3] += 1
        assert not torch.isclose(model(batch), model(SetBatch(points, batch.sizes)), rtol=1e-10).any()

    def test_a_negative_number_is_refused(self) -> None:
        with pytest.raises(ValueError, match="got -1"):
            KnnGraphNetwork(channels_in=2, widths=(2,), neighbours=-1)
