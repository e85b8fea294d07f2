"""Lean layers: a layer that shares weights is the full layer with equal weights."""

from __future__ import annotations

import pytest
import torch

from anyorder import Elu, Encoder, EncoderLayer, EquivariantAttention, Features, RandomFeatures, Softmax, SparseIndexSet
from anyorder.algebra import SHARINGS, attention_program, classes, pointwise_into, projecting
from anyorder.layers.attention_maps import attention_map
from anyorder.layers.linear import lightweight_mlp
from anyorder.testing import assert_equivariant, random_features, random_index_set

KERNELS = {
    "softmax": {"kernel": Softmax()},
    "relaxed": {"kernel": RandomFeatures(num_features=4)},
    "exact": {"kernel": Elu(), "coupling": "exact"},
    "favor": {"kernel": RandomFeatures(kind="softmax", num_features=4)},
    "by kind": {"kernel": {"local": Softmax(), "global": Elu()}},
    "sum": {"kernel": RandomFeatures(num_features=4), "normalize": False},
}
SHARED = [sharing for sharing in SHARINGS if sharing != "none"]


def layer(k, l, name, **options):
    torch.manual_seed(3)
    sizes = {"order_in": k, "order_out": l, "channels": 3, "heads": 2, "head_channels": 2}
    return EquivariantAttention(**sizes, **KERNELS[name], **options).double()


def full_of(lean, k, l, name):
    """The layer of the paper with the weights of a lean one."""
    full = layer(k, l, name)
    with torch.no_grad():
        for cls in full.classes:
            given = lean.weights_of(cls)
            if "raised" in given:
                given["output"] = given["output"] @ given.pop("raised")
            for each, weight in full.weights_of(cls).items():
                weight.copy_(given[each])
        for each, buffer in full.named_buffers():
            buffer.copy_(lean.get_buffer(each))
    return full


def problem(k, l, same):
    generator = torch.Generator().manual_seed(7)
    x = random_features(k, channels=3, num_nodes=5, num_graphs=2, density=0.6, generator=generator)
    return x, x.index if same else random_index_set(l, density=0.6, like=x.index, generator=generator)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("sharing", SHARED)
@pytest.mark.parametrize(
    ("k", "l", "same"), [(1, 1, True), (2, 2, True), (2, 2, False), (1, 2, False), (2, 1, False), (2, 0, False)]
)
def test_equals_the_full_layer_with_equal_weights(k, l, same, sharing, name):
    x, target = problem(k, l, same)
    lean = layer(k, l, name, sharing=sharing, output_rank=2 if l == 2 else None)
    full = full_of(lean, k, l, name)
    torch.testing.assert_close(lean(x, target).rows, full(x, target).rows, atol=1e-12, rtol=1e-10)


@pytest.mark.parametrize("sharing", SHARED)
def test_gradients_are_those_of_the_full_layer(sharing):
    x, target = problem(2, 2, True)
    lean = layer(2, 2, "relaxed", sharing=sharing)
    grads = []
    for each in (lean, full_of(lean, 2, 2, "relaxed")):
        rows = x.rows.clone().requires_grad_()
        each(x.with_rows(rows), target).rows.square().sum().backward()
        grads.append(rows.grad)
    torch.testing.assert_close(*grads, atol=1e-12, rtol=1e-10)


@pytest.mark.parametrize("sharing", SHARED)
@pytest.mark.parametrize(("k", "l"), [(2, 2), (3, 2), (2, 1)])
def test_is_equivariant(k, l, sharing):
    x, _ = problem(k, l, False)
    assert_equivariant(layer(k, l, "relaxed", sharing=sharing), x)


def test_every_step_of_sharing_takes_fewer_weights():
    def count(sharing):
        return sum(p.numel() for p in layer(2, 2, "relaxed", sharing=sharing).parameters())

    assert count("none") > count("queries") > count("keys and queries")
    assert count("none") > count("keys") > count("keys and queries")


def test_a_group_is_summed_once_where_keys_are_shared():
    every = classes(2, 2)
    printed = str(attention_program(2, 2, every, ("relaxed", "relaxed"), True, "keys and queries"))
    assert [line for line in printed.splitlines() if line.startswith("attend")] == [
        "attend    [0] relaxed by graph: (j,j) -> (i,i), (k,k) -> (i,j)",
        "attend    [1] relaxed by graph: (j,k) -> (i,i), (k,l) -> (i,j)",
        "attend    [2] relaxed by i: (i,j) -> (i,i), (i,k) -> (i,j), (j,k) -> (i,j)",
        "attend    [3] relaxed by j: (j,i) -> (i,i), (k,i) -> (i,j), (k,j) -> (i,j)",
    ]


def test_a_model_has_it_in_every_layer_and_saves_it(tmp_path):
    sizes = {"channels_in": 3, "channels": 4, "channels_out": 1, "heads": 2, "head_channels": 2}
    model = Encoder(order_in=2, orders=(2, 0), kernel="relu", sharing="keys and queries", output_rank=2, **sizes)
    assert [each.attention.sharing for each in model.layers] == ["keys and queries"] * 2
    model.save(tmp_path / "model")
    again = Encoder.load(tmp_path / "model")
    x = random_features(order=2, channels=3, dtype=torch.float32)
    assert torch.equal(model(x).rows, again(x).rows)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_an_mlp_in_place_lets_no_entry_look_at_another(order):
    sizes = {"order_in": order, "order_out": order, "channels": 4, "heads": 2, "head_channels": 2}
    lean = EncoderLayer(**sizes, mlp_classes="pointwise, in place").double()
    x = random_features(order=order, channels=4)
    rows = x.rows.clone().requires_grad_()
    lightweight_mlp(lean.widen, lean.narrow, torch.tanh, x.with_rows(rows))[0].sum().backward()
    assert rows.grad[0].abs().sum() > 0 and rows.grad[1:].eq(0).all()
    assert_equivariant(lean, x)
    full = EncoderLayer(**sizes)
    counts = [sum(weight.numel() for weight in each.parameters()) for each in (lean, full)]
    assert counts[0] == counts[1] if order == 1 else counts[0] < counts[1]


def test_an_mlp_that_reads_once_has_its_second_map_in_place():
    layer = EncoderLayer(
        order_in=2, order_out=2, channels=4, heads=2, head_channels=2, mlp_classes="pointwise, then in place"
    ).double()
    assert (len(layer.widen.classes), len(layer.narrow.classes)) == (5, 2)
    assert_equivariant(layer, random_features(order=2, channels=4))


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("name", ["pointwise, aligned", "pointwise, aligned, then in place"])
def test_an_aligned_mlp_is_the_full_one_with_zero_weights_for_what_moves(order, name):
    torch.manual_seed(0)
    sizes = {"order_in": order, "order_out": order, "channels": 4, "heads": 2, "head_channels": 2}
    part, full = EncoderLayer(**sizes, mlp_classes=name).double(), EncoderLayer(**sizes).double()
    x = random_features(order=order, channels=4)
    with torch.no_grad():
        for some, whole in ((part.widen, full.widen), (part.narrow, full.narrow)):
            assert {*some.classes} < {*whole.classes}
            whole.bias.copy_(some.bias)
            whole.weight.zero_()
            for cls, weight in zip(some.classes, some.weight, strict=True):
                whole.weight[whole.classes.index(cls)] = weight
    made, wanted = (lightweight_mlp(each.widen, each.narrow, torch.tanh, x) for each in (part, full))
    torch.testing.assert_close(made, wanted, atol=1e-12, rtol=1e-10)
    assert_equivariant(part, x)


def test_in_an_aligned_mlp_an_edge_reads_its_nodes_and_not_its_reversal():
    layer = EncoderLayer(order_in=2, order_out=2, channels=4, heads=2, head_channels=2, mlp_classes="pointwise, aligned")
    pairs = torch.tensor([[0, 0], [1, 1], [2, 2], [0, 1], [1, 0]])
    rows = torch.randn(5, 4, requires_grad=True)
    x = Features(SparseIndexSet(pairs, num_nodes=3), rows)
    lightweight_mlp(layer.widen, layer.narrow, torch.tanh, x)[3].sum().backward()
    assert rows.grad is not None
    assert [bool(row.any()) for row in rows.grad] == [True, True, False, True, False]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("kernel", ["softmax", "relu"])
def test_attention_without_a_direct_part_is_the_full_one_with_zero_weights_there(order, kernel):
    sizes = {"order_in": order, "order_out": order, "channels": 4, "heads": 2, "head_channels": 2, "kernel": kernel}
    full, lean = EncoderLayer(**sizes).double(), EncoderLayer(**sizes, direct=False).double()
    assert all("direct" not in str(step) for step in lean.attention.program_same.steps)
    lean.load_state_dict(full.state_dict(), strict=False)
    x = random_features(order=order, channels=4)
    assert not torch.allclose(lean(x).rows, full(x).rows)
    with torch.no_grad():
        for name, weight in full.attention.named_parameters():
            if name.startswith("pointwise."):
                weight.zero_()
    torch.testing.assert_close(lean(x).rows, full(x).rows)
    assert_equivariant(lean, x)


def test_where_no_residual_is_added_the_direct_part_stays():
    sizes = {"channels": 4, "heads": 2, "head_channels": 2, "direct": False}
    kinds = [
        {cls.kind for cls in EncoderLayer(**sizes, **given).attention.classes}
        for given in (
            {"order_in": 1, "order_out": 2},
            {"order_in": 2, "order_out": 2, "residual": False},
            {"order_in": 0, "order_out": 0},
            {"order_in": 2, "order_out": 2},
        )
    ]
    assert ["pointwise" in some for some in kinds] == [True, True, True, False]


def test_wrong_settings_are_refused():
    with pytest.raises(ValueError, match="mlp_classes must be pointwise classes of order 2, got 'all'"):
        EncoderLayer(order_in=2, order_out=2, channels=4, heads=2, head_channels=2, mlp_classes="all")
    with pytest.raises(ValueError, match=r"sharing must be one of \['none', .*\], got 'all'"):
        layer(1, 1, "softmax", sharing="all")
    with pytest.raises(ValueError, match="output_rank must be a positive integer, got 0"):
        layer(1, 1, "softmax", output_rank=0)
    with pytest.raises(ValueError, match=r"projection_classes must be one of .*, got 'in place'"):
        layer(1, 1, "softmax", projection_classes="in place")


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(("k", "l", "same"), [(2, 2, True), (2, 2, False), (2, 1, False), (3, 2, False)])
def test_queries_and_keys_in_place_are_those_of_the_full_layer_with_zero_weights_elsewhere(k, l, same, name):
    x, target = problem(k, l, same)
    lean, full = layer(k, l, name, projection_classes="pointwise, in place"), layer(k, l, name)
    with torch.no_grad():
        for cls in full.classes:
            given, own = lean.weights_of(cls), full.weights_of(cls)
            for each, weight in own.items():
                if each not in ("query", "key") or weight.shape == given[each].shape:
                    weight.copy_(given[each])
                    continue
                pattern = cls.target if each == "query" else cls.source
                every = pointwise_into(k, pattern)
                weight.zero_()
                weight[every.index(projecting(k, pattern, in_place=True)[0])].copy_(given[each][0])
        for each, buffer in full.named_buffers():
            buffer.copy_(lean.get_buffer(each))
    assert sum(p.numel() for p in lean.parameters()) < sum(p.numel() for p in full.parameters())
    torch.testing.assert_close(lean(x, target).rows, full(x, target).rows, atol=1e-12, rtol=1e-10)
    cls = next(cls for cls in lean.classes if cls.kind == "local")
    maps = [attention_map(each, x, cls, target) for each in (lean, full)]
    torch.testing.assert_close(*maps, atol=1e-12, rtol=1e-10)


def test_queries_and_keys_in_place_are_equivariant_and_saved(tmp_path):
    x, _ = problem(2, 2, False)
    model = Encoder(
        order_in=2,
        orders=(2, 2),
        channels_in=3,
        channels=4,
        channels_out=2,
        heads=2,
        head_channels=2,
        kernel=Elu(),
        classes="into nodes",
        projection_classes="pointwise, in place",
    ).double()
    assert_equivariant(model, x)
    model.save(tmp_path / "model")
    torch.testing.assert_close(Encoder.load(tmp_path / "model")(x).rows, model(x).rows)
    assert "(i,j): key[1] x 1, key[2] x 1, key[3] x 1 = (i,j) w0" in str(model.layers[0].attention.program_same)
