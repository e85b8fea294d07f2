"""Laws of EquivariantAttention, over all orders, layouts, kernels and couplings."""

from __future__ import annotations

import pytest
import torch

import oracles
from anyorder import (
    Elu,
    EncoderLayer,
    EquivariantAttention,
    Features,
    LearnedFeatures,
    RandomFeatures,
    Softmax,
    SparseIndexSet,
    collate,
    redraw_features,
)
from anyorder.algebra.program import Attend
from anyorder.layouts import CompleteIndexSet, Exact, Grouped, Tiling
from anyorder.models.hypergraph import HypergraphEncoder
from anyorder.models.propagation import PropagationEncoder
from anyorder.testing import assert_equivariant, random_features, random_index_set

KERNELS = {
    "softmax": {"kernel": Softmax()},
    "relu-relaxed": {"kernel": RandomFeatures(kind="relu", num_features=4)},
    "relu-exact": {"kernel": RandomFeatures(kind="relu", num_features=4), "coupling": "exact"},
    "favor-relaxed": {"kernel": RandomFeatures(kind="softmax", num_features=4)},
    "favor-exact": {"kernel": RandomFeatures(kind="softmax", num_features=4), "coupling": "exact"},
    "elu-relaxed": {"kernel": Elu()},
    "learned-relaxed": {"kernel": LearnedFeatures(num_features=4)},
    "learned-exact": {"kernel": LearnedFeatures(num_features=4), "coupling": "exact"},
    "learned-products": {"kernel": LearnedFeatures(num_features=16, factors=2)},
    "learned-products-exact": {"kernel": LearnedFeatures(num_features=8, factors=3), "coupling": "exact"},
    "elu-exact": {"kernel": Elu(), "coupling": "exact"},
    "relu-sum": {"kernel": RandomFeatures(kind="relu", num_features=4), "normalize": False},
    "elu-exact-sum": {"kernel": Elu(), "coupling": "exact", "normalize": False},
}
# An output of order 0 uses softmax whatever the kernel: one kernel is enough there.
CASES = [
    pytest.param(k, l, kernel, id=f"{k}to{l}-{kernel}", marks=[pytest.mark.slow] if k + l > 4 else [])
    for k, l in [(k, l) for k in range(4) for l in range(4)] + [(1, 4), (2, 4), (4, 1), (4, 2)]
    for kernel in (KERNELS if l else ["softmax"])
]
CHANNELS, HEADS, WIDTH = 3, 2, 2


def layer(k, l, name="softmax", **options):
    torch.manual_seed(k * 10 + l)
    options = {**KERNELS[name], **options}
    module = EquivariantAttention(order_in=k, order_out=l, channels=CHANNELS, heads=HEADS, head_channels=WIDTH, **options)
    return module.double()


def problem(k, l, layout="sparse", num_nodes=5, num_graphs=2, seed=7):
    generator = torch.Generator().manual_seed(seed)
    density = 0.6 if k + l < 6 else 0.2
    sizes = {"num_nodes": num_nodes, "num_graphs": num_graphs, "layout": layout, "density": density}
    x = random_features(k, channels=CHANNELS, generator=generator, **sizes)
    if layout != "sparse":
        return x, x.index.with_order(l)
    return x, random_index_set(l, density=density, like=x.index, generator=generator)


def positive(x):
    return torch.exp(x) if x < 0 else x + 1


def score_of(module):
    kernel = module.kernel
    if isinstance(kernel, Softmax):
        return oracles.softmax_score
    if isinstance(kernel, Elu):
        return lambda q, k: sum((positive(a) + kernel.eps) * (positive(b) + kernel.eps) for a, b in zip(q, k))

    def phi(x):
        x = x / len(x) ** 0.25
        if isinstance(kernel, LearnedFeatures):
            made = torch.ones(1, dtype=x.dtype)
            for some in module.directions.chunk(kernel.factors):
                scores = torch.stack([w @ x for w in some])
                made = torch.kron(made, torch.cat([scores, -scores]).softmax(0) + kernel.eps)
            return made
        if kernel.kind == "relu":
            return torch.stack([torch.clamp(w @ x, min=0) + kernel.eps for w in module.directions])
        return torch.stack([torch.exp(w @ x - x @ x / 2) for w in module.directions])

    return lambda q, k: phi(q) @ phi(k)


def definition(module, x, target):
    tuples, graphs = x.index.tuples.tolist(), x.index.entry_graph.tolist()
    described = {}
    for cls in module.classes:
        weights = module.weights_of(cls)
        if cls.kind != "pointwise":
            for what, pattern in (("query", cls.target), ("key", cls.source)):
                maps = getattr(module, what)["p" + "_".join(map(str, pattern.labels))]
                each = {c.partition.labels: w for c, w in zip(maps.classes, weights.get(what, ()), strict=True)}
                weights[what] = oracles.lightweight(x.rows, tuples, graphs, each, weights[what + "_bias"])
        described[cls.partition.labels] = weights
    exact = isinstance(module.kernel, Softmax) or module.coupling == "exact"
    member = oracles.same_class if exact else oracles.equalities_hold
    return oracles.attention(
        x.rows,
        tuples,
        graphs,
        target.tuples.tolist(),
        target.entry_graph.tolist(),
        described,
        score_of(module),
        member,
        module.normalize,
    )


@pytest.mark.parametrize(("k", "l", "kernel"), CASES)
class TestAllOrders:
    @pytest.mark.parametrize("layout", ["sparse", "dense"])
    def test_is_equivariant(self, k, l, kernel, layout):
        x, target = problem(k, l, layout)
        assert_equivariant(layer(k, l, kernel), x, target)

    def test_matches_the_definition(self, k, l, kernel):
        if kernel.startswith("favor"):  # the epsilon of the stabilised map depends on its shift
            options = {"kernel": RandomFeatures(kind="softmax", num_features=4, eps=1e-300)}
        else:
            options = {}
        x, target = problem(k, l, num_nodes=4 if k + l < 5 else 3)
        module = layer(k, l, kernel, **options)
        with torch.no_grad():
            torch.testing.assert_close(module(x, target).rows, definition(module, x, target), rtol=1e-8, atol=1e-8)

    def test_sparse_on_the_full_index_set_equals_dense(self, k, l, kernel):
        x, target = problem(k, l, "dense", num_nodes=4)
        nodes = {"num_nodes": x.num_nodes, "node_graph": x.index.node_graph, "num_graphs": x.num_graphs}
        sparse, sparse_target = SparseIndexSet(x.index.tuples, **nodes), SparseIndexSet(target.tuples, **nodes)
        module = layer(k, l, kernel)
        torch.testing.assert_close(module(Features(sparse, x.rows), sparse_target).rows, module(x, target).rows)

    def test_a_graph_does_not_see_its_batch_neighbours(self, k, l, kernel):
        x, target = problem(k, l, num_graphs=1)
        y, other = problem(k, l, num_graphs=1, num_nodes=3, seed=8)
        module = layer(k, l, kernel)
        both = module(collate([x, y.with_rows(y.rows * 10)]), SparseIndexSet.collate([target, other])).rows
        torch.testing.assert_close(both[: target.num_entries], module(x, target).rows, rtol=1e-9, atol=1e-9)

    def test_padding_changes_nothing(self, k, l, kernel):
        x, _ = problem(k, l, "dense", num_nodes=4)
        values = torch.nn.functional.pad(x.values, (0, 0, *[0, 2] * k), value=5.0)
        wide = Features(type(x.index)(k, torch.nn.functional.pad(x.index.mask, (0, 2))), values)
        module = layer(k, l, kernel)
        torch.testing.assert_close(module(wide).rows, module(x).rows)


def test_favor_approaches_softmax_with_many_features():
    x, target = problem(1, 1, num_nodes=8, num_graphs=1)
    exact = layer(1, 1)
    many = layer(1, 1, kernel=RandomFeatures(kind="softmax", num_features=20000, eps=1e-12), coupling="exact")
    many.load_state_dict({**exact.state_dict(), "directions": many.directions})
    torch.testing.assert_close(many(x, target).rows, exact(x, target).rows, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("k", "l"), [(0, 2), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2), (3, 2)])
def test_empty_sets_give_zeros_never_nan(k, l, kernel):
    nodes = {"num_nodes": 3, "node_graph": torch.tensor([0, 2, 2]), "num_graphs": 3}
    for count in (3,) if k == 0 else (0, 1):
        source = SparseIndexSet(torch.ones(count, k, dtype=torch.int64), **nodes)
        target = SparseIndexSet(
            torch.empty(3, 0, dtype=torch.int64) if l == 0 else torch.tensor([[0] * l, [1] * l]), **nodes
        )
        values = torch.randn(source.num_entries, CHANNELS, dtype=torch.float64, requires_grad=True)
        module = layer(k, l, kernel)
        out = module(Features(source, values), target).rows
        if out.requires_grad:  # without any entry nothing depends on anything
            out.sum().backward()
        assert out.isfinite().all()
        assert values.grad is None or values.grad.isfinite().all()
        assert all(p.grad is None or p.grad.isfinite().all() for p in module.parameters())


def test_a_query_without_keys_receives_zero():
    nodes = SparseIndexSet(torch.tensor([[0]]), num_nodes=1)
    module = layer(1, 1, "relu-exact", classes=lambda cls: cls.kind == "global")
    out = module(Features(nodes, torch.randn(1, CHANNELS, dtype=torch.float64)))
    assert (out.rows == 0).all()


@pytest.mark.numeric
@pytest.mark.parametrize("kernel", ["relu-exact", "favor-exact", "elu-exact"])
def test_exact_coupling_keeps_its_digits_at_a_hub(kernel):
    """One allowed key among many: node 0 receives the edges that leave it, and one edge of another pair is global."""
    leaves = 3000
    star = torch.stack([torch.zeros(leaves, dtype=torch.int64), torch.arange(1, leaves + 1)], 1)
    tuples = torch.cat([star, torch.tensor([[leaves + 1, leaves + 2]])])
    edges = SparseIndexSet(tuples, num_nodes=leaves + 3)
    target = SparseIndexSet(torch.tensor([[0, 1]]), num_nodes=leaves + 3)
    values = torch.randn(len(tuples), CHANNELS, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    module = layer(2, 2, kernel, classes=lambda cls: cls.kind != "pointwise")
    expected = module(Features(edges, values), target).rows
    single = module.float()(Features(edges, values.float()), target).rows
    torch.testing.assert_close(single.double(), expected, rtol=1e-4, atol=1e-4)
    assert expected.abs().max() > 1e-3


def test_constant_attention_is_the_mean_linear_layer():
    """Theorem 1: with constant queries and keys, attention is EquivariantLinear with reduce='mean'."""
    from anyorder import EquivariantLinear

    for k, l in [(1, 1), (1, 2), (2, 1), (2, 2), (3, 2)]:
        x, target = problem(k, l)
        for kernel, reduce in [("softmax", "mean"), ("relu-exact", "mean"), ("elu-exact", "mean"), ("elu-exact-sum", "sum")]:
            module = layer(k, l, kernel)
            linear = EquivariantLinear(
                order_in=k, order_out=l, channels_in=CHANNELS, channels_out=CHANNELS, reduce=reduce, bias=False
            ).double()
            with torch.no_grad():
                for maps in (module.query, module.key):
                    for each in maps.values():
                        for weight in each.parameters():
                            weight.zero_()
                for n, cls in enumerate(linear.classes):
                    weights = module.weights_of(cls)
                    if cls.kind == "pointwise":
                        linear.weight[n] = weights["pointwise"]
                    else:
                        scale = 1 if module.normalize else WIDTH * (1 + Elu().eps) ** 2  # phi(0).phi(0) for each channel
                        linear.weight[n] = scale * torch.einsum("ihc,hco->io", weights["value"], weights["output"])
            torch.testing.assert_close(module(x, target).rows, linear(x, target).rows, rtol=1e-9, atol=1e-9)


def test_softmax_does_not_need_all_pairs_at_once(monkeypatch):
    x, target = problem(2, 2, num_nodes=8, num_graphs=1)
    expected = layer(2, 2)(x, target)
    monkeypatch.setattr("anyorder.layouts.tiles.TILE_PAIRS", 16)
    fresh = SparseIndexSet(x.index.tuples, num_nodes=8)
    other = SparseIndexSet(target.tuples, num_nodes=8)
    module = layer(2, 2)
    values = x.rows.clone().requires_grad_()
    out = module(Features(fresh, values), other)
    torch.testing.assert_close(out.rows, expected.rows)
    out.rows.sum().backward()
    gradient = values.grad.clone()
    wide = x.rows.clone().requires_grad_()
    module(Features(x.index, wide), target).rows.sum().backward()
    torch.testing.assert_close(gradient, wide.grad)


@pytest.mark.parametrize("kernel", ["softmax", "relu-relaxed", "relu-exact", "favor-relaxed", "elu-exact"])
def test_gradients_are_right(kernel):
    x, target = problem(2, 2, num_nodes=3, num_graphs=1)
    module = layer(2, 2, kernel)
    values = x.rows.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda v: module(x.with_rows(v), target).rows, (values,), atol=1e-6, fast_mode=True)


def test_redraw_changes_directions_at_its_steps_only():
    module = layer(1, 1, "relu-relaxed")
    module.kernels = (RandomFeatures(num_features=4, redraw=10),) * 2
    before = module.directions.clone()
    redraw_features(module, 9)
    torch.testing.assert_close(module.directions, before)
    redraw_features(module, 10)
    after = module.directions.clone()
    assert not torch.equal(after, before)
    redraw_features(module, 10)
    torch.testing.assert_close(module.directions, after)


def test_redraw_reaches_every_layer_with_random_directions():
    kernel = RandomFeatures(redraw=1)
    sizes = {"channels_in": 4, "channels": 8, "channels_out": 2, "layers": 1, "heads": 2}
    for model in (HypergraphEncoder(**sizes, head_channels=4, kernel=kernel), PropagationEncoder(**sizes, kernel=kernel)):
        before = {name: held.clone() for name, held in model.named_buffers() if name.endswith("directions")}
        redraw_features(model, 5)
        assert len(before) == 2 and all(not torch.equal(held, model.get_buffer(name)) for name, held in before.items())


def test_random_directions_are_orthogonal():
    directions = RandomFeatures(num_features=4).draw(4).double()
    product = directions @ directions.T
    torch.testing.assert_close(product, torch.diag(product.diag()), rtol=0, atol=1e-5)
    assert RandomFeatures().features_for(1) == 1


def test_without_gradients_a_layer_gives_the_same_and_leaves_its_input_alone():
    index = SparseIndexSet(torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]]), num_nodes=2)
    sizes = {"order_in": 2, "order_out": 2, "channels": 4, "heads": 1, "head_channels": 4}
    layer = EncoderLayer(**sizes, kernel=RandomFeatures()).eval()
    x = Features(index, torch.randn(4, 4))
    before, expected = x.values.clone(), layer(x).values.detach()
    seen = []
    layer.attention.register_forward_hook(lambda module, given, out: seen.append((out.rows, out.rows.clone())))
    with torch.no_grad():
        torch.testing.assert_close(layer(x).values, expected)
    assert torch.equal(x.values, before)
    assert all(torch.equal(now, then) for now, then in seen) and seen


def test_learned_features_become_sharper_as_queries_grow_and_relu_features_do_not():
    torch.manual_seed(0)
    query, key = torch.randn(1, 1, 1, 8), torch.randn(32, 1, 1, 8)
    known = Grouped(None, None, torch.zeros(32, dtype=torch.int64), 1)

    def peak(kernel, scale):
        features = kernel.feature_map(kernel.draw(8, torch.Generator().manual_seed(1)))
        q, k, left = kernel.transform(known, scale * query, scale * key, features, True)
        weights = (left(q) * left(k)).sum(-1).flatten()
        return float(weights.max() / weights.mean())

    assert peak(LearnedFeatures(), 10) > 2 * peak(LearnedFeatures(), 1)
    assert peak(RandomFeatures(), 10) < 1.2 * peak(RandomFeatures(), 1)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize(("order_in", "order_out"), [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_pairs_of_few_keys_give_what_signed_sums_give(order_in, order_out, normalize, monkeypatch):
    results = []
    for few in (0, 10**9):
        monkeypatch.setattr("anyorder.layouts.plan.FEW_KEYS", few)
        torch.manual_seed(0)
        index = CompleteIndexSet(order_in, torch.tensor([5, 2]))
        x = Features.of_rows(index, torch.randn(index.num_entries, 4, dtype=torch.float64))
        sizes = {"order_in": order_in, "order_out": order_out, "channels": 4, "heads": 2, "head_channels": 4}
        kernel = LearnedFeatures(num_features=16, factors=2)
        layer = EquivariantAttention(**sizes, kernel=kernel, coupling="exact", normalize=normalize).double()
        plan = x.index.plan(x.index.target(order_out, None))
        known = [one for step in layer.program.steps if isinstance(step, Attend) for one in plan._bind(step, layer.program)]
        assert all(isinstance(one, Tiling if few else Exact) for one in known) and known
        answers = layer(x).rows
        results.append([answers.detach(), *torch.autograd.grad(answers.square().sum(), [*layer.parameters()])])
    for by_sums, by_pairs in zip(*results, strict=True):
        torch.testing.assert_close(by_pairs, by_sums, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"num_features": 5}, "must be even"),
        ({"num_features": 32, "factors": 2}, "an even number to the power of factors=2, got 32"),
        ({"num_features": 9, "factors": 2}, "an even number to the power of factors=2, got 9"),
        ({"factors": 2}, "must be given with factors=2"),
        ({"num_features": 4, "factors": 0}, "factors must be a positive integer"),
    ],
)
def test_learned_features_that_cannot_be(given, message):
    with pytest.raises(ValueError, match=message):
        LearnedFeatures(**given)


def test_dropout_acts_on_what_heads_receive_and_not_on_the_pointwise_part():
    layer = EquivariantAttention(order_in=2, order_out=2, channels=4, heads=2, head_channels=4, dropout=0.5).double()
    x = random_features(order=2, channels=4)
    torch.manual_seed(0)
    with torch.no_grad():
        direct = [weight.clone() for weight in layer.pointwise.parameters()]
        for weight in layer.pointwise.parameters():
            weight.zero_()
        heads, thinned = layer.eval()(x).rows, layer.train()(x).rows
        assert not torch.allclose(heads, thinned)
        assert (thinned != 0).all()  # dropped before the output matrix: after it half of the entries would be zero
        for weight, kept in zip(layer.pointwise.parameters(), direct, strict=True):
            weight.copy_(kept)
        for weight in layer.output.parameters():
            weight.zero_()
        assert torch.equal(layer.eval()(x).rows, layer.train()(x).rows)
