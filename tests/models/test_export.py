"""``torch.export``: a model becomes a program of plain operators that answers for any tuples, nodes and graphs."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.export import Dim

import anyorder
from anyorder.layers import INTO_NODES
from anyorder.layouts import CompleteIndexSet, DenseIndexSet, Features, SparseIndexSet, SymmetricIndexSet
from anyorder.models import Encoder, EquivariantMLP, SymmetricEncoder
from anyorder.testing import random_features

SIZES = {"channels_in": 3, "channels": 8, "channels_out": 2, "heads": 2, "head_channels": 4}


def features(order, layout, seed=0, num_nodes=7):
    generator = torch.Generator().manual_seed(seed)
    options = {"layout": layout, "num_nodes": num_nodes, "density": 0.6, "dtype": torch.float32}
    return random_features(order, channels=3, generator=generator, **options)


def encoder(order_in, orders, kernel, coupling=None):
    torch.manual_seed(0)
    return Encoder(order_in=order_in, orders=orders, kernel=kernel, coupling=coupling, **SIZES)


def mlp(order_in, orders, reduce):
    torch.manual_seed(0)
    return EquivariantMLP(order_in=order_in, orders=orders, channels_in=3, channels=4, channels_out=2, reduce=reduce)


def inputs(x):
    """What the program of a model on these features takes."""
    if isinstance(x.index, DenseIndexSet):
        return {"values": x.values, "mask": x.index.mask}
    if isinstance(x.index, CompleteIndexSet):
        return {"values": x.values, "sizes": x.index.sizes}
    return {"tuples": x.index.tuples, "values": x.values, "node_graph": x.index.node_graph}


def on(tuples, num_nodes, node_graph=None):
    index = SparseIndexSet(torch.tensor(tuples), num_nodes=num_nodes, node_graph=node_graph)
    return Features(index, torch.randn(len(tuples), 3, generator=torch.Generator().manual_seed(1)))


LOOPS, NO_LOOPS, ONE = on([[0, 0], [1, 1]], 2), on([[0, 1], [1, 0], [1, 2]], 4), on([[0, 0]], 1)
"""Tuples of one pattern only, nodes without tuples, one tuple: none of which an example of the export had."""


def others(order, layout):
    some = [features(order, layout, seed=seed, num_nodes=5 + 3 * seed) for seed in (1, 2)]
    return [*some, LOOPS, NO_LOOPS, ONE] if (order, layout) == (2, "sparse") else some


def assert_same(model, program, given):
    answer = program.module()
    with torch.no_grad():
        for x in given:
            torch.testing.assert_close(answer(**inputs(x)), model.eval()(x).values, rtol=1e-5, atol=1e-5)


CASES = [
    pytest.param(lambda: mlp(1, (1,), "mean"), 1, "sparse", id="mlp 1-1"),
    pytest.param(lambda: mlp(2, (2, 1), "mean"), 2, "sparse", id="mlp 2-2-1", marks=pytest.mark.slow),
    pytest.param(lambda: mlp(2, (2, 0), "sum"), 2, "sparse", id="mlp 2-2-0", marks=pytest.mark.slow),
    pytest.param(lambda: encoder(2, (2, 0), "relu"), 2, "sparse", id="2-2-0", marks=pytest.mark.slow),
    pytest.param(lambda: encoder(2, (2, 1), "softmax"), 2, "sparse", id="softmax", marks=pytest.mark.slow),
    pytest.param(lambda: encoder(2, (1,), "elu", "exact"), 2, "sparse", id="exact", marks=pytest.mark.slow),
    pytest.param(lambda: encoder(1, (1, 2), "softmax"), 1, "dense", id="dense", marks=pytest.mark.slow),
    pytest.param(lambda: encoder(2, (2, 0), "favor"), 2, "complete", id="complete", marks=pytest.mark.slow),
    pytest.param(lambda: encoder(3, (1,), "relu"), 3, "sparse", id="order 3", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("make", "order", "layout"), CASES)
def test_a_program_answers_as_its_model_for_any_sizes(make, order, layout):
    model = make()
    program = anyorder.export(model, features(order, layout))
    assert model.training, "the model is left as it was"
    assert_same(model, program, others(order, layout))
    assert not [node for node in program.graph.nodes if "anyorder" in str(node.target)], "plain operators only"


ALONE = """
import sys, torch
program, given = torch.export.load(sys.argv[1]), torch.load(sys.argv[2])
torch.save(program.module()(**given), sys.argv[3])
assert not [name for name in sys.modules if name.split(".")[0] == "anyorder"]
"""


@pytest.mark.slow
def test_a_saved_program_needs_no_anyorder(tmp_path):
    model, x = encoder(2, (1,), "relu").eval(), features(2, "sparse", seed=3, num_nodes=12)
    torch.export.save(anyorder.export(model, features(2, "sparse")), tmp_path / "model.pt2")
    torch.save(inputs(x), tmp_path / "given.pt")
    names = [str(tmp_path / name) for name in ("model.pt2", "given.pt", "answer.pt")]
    subprocess.run([sys.executable, "-c", ALONE, *names], check=True, cwd=tmp_path)
    torch.testing.assert_close(torch.load(tmp_path / "answer.pt"), model(x).values.detach(), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_targets_are_inputs_or_complete():
    model = encoder(1, (2,), "relu").eval()
    x, pairs = features(1, "sparse"), features(2, "sparse").index
    whole = anyorder.export(model, x, x.index.complete(2)).module()
    some = anyorder.export(model, x, pairs).module()
    y = features(1, "sparse", seed=1, num_nodes=9)
    wanted = features(2, "sparse", seed=1, num_nodes=9).index
    torch.testing.assert_close(whole(**inputs(y)), model(y, y.index.complete(2)).values, rtol=1e-5, atol=1e-5)
    answer = some(**inputs(y), target=wanted.tuples)
    torch.testing.assert_close(answer, model(y, wanted).values, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [None, anyorder.Elu()], ids=["softmax", "elu"])
def test_unordered_hyperedges(kernel):
    torch.manual_seed(0)
    model = SymmetricEncoder(order_in=3, orders=(3, 1), kernel=kernel, **SIZES).eval()

    def hyperedges(count, num_nodes, seed):
        draw = torch.Generator().manual_seed(seed)
        rows = torch.unique(
            torch.stack([torch.randperm(num_nodes, generator=draw)[:3].sort().values for _ in range(count)]), dim=0
        )
        return Features(SymmetricIndexSet(rows, num_nodes=num_nodes), torch.randn(len(rows), 3, generator=draw))

    program = anyorder.export(model, hyperedges(5, 7, 0))
    assert_same(model, program, [hyperedges(9, 12, 1), hyperedges(30, 8, 2)])


class Links(nn.Module):
    """A module of a user that makes its index sets inside."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(5, 3)
        self.layer = anyorder.EquivariantLinear(order_in=1, order_out=2, channels_in=3, channels_out=1)

    def forward(self, kinds, edge_index):
        nodes = SparseIndexSet(torch.arange(kinds.shape[0])[:, None], num_nodes=kinds.shape[0])
        edges = SparseIndexSet.from_edge_index(edge_index, num_nodes=kinds.shape[0], loops=False)
        return self.layer(Features.of_rows(nodes, self.embed(kinds)), edges).rows.flatten().sigmoid()


def test_modules_of_users_export():
    model = Links().eval()
    example = (torch.tensor([0, 1, 2]), torch.tensor([[0, 1], [1, 2]]))
    program = torch.export.export(model, example, dynamic_shapes=({0: Dim.DYNAMIC}, {1: Dim.DYNAMIC}))
    given = (torch.tensor([4, 1, 2, 0, 3]), torch.tensor([[0, 1, 4, 3, 2], [1, 2, 0, 3, 1]]))
    torch.testing.assert_close(program.module()(*given), model(*given))


ONNX = [
    pytest.param(lambda: encoder(2, (0,), "relu"), 2, "sparse", id="sparse"),
    pytest.param(lambda: encoder(1, (1, 2), "relu"), 1, "dense", id="dense"),
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("make", "order", "layout"), ONNX)
def test_onnx_answers_as_the_model(make, order, layout, tmp_path):
    pytest.importorskip("onnxscript", reason="ONNX is tested where the extra onnx is installed")
    runtime = pytest.importorskip("onnxruntime", reason="ONNX is tested where the extra onnx is installed")
    model = make().eval()
    torch.onnx.export(anyorder.export(model, features(order, layout)), dynamo=True, verbose=False).save(
        tmp_path / "model.onnx"
    )
    session = runtime.InferenceSession(tmp_path / "model.onnx")
    for seed in (1, 2):
        x = features(order, layout, seed=seed, num_nodes=5 + 3 * seed)
        (answer,) = session.run(None, {name: tensor.numpy() for name, tensor in inputs(x).items()})
        torch.testing.assert_close(torch.tensor(answer), model(x).values.detach(), rtol=1e-4, atol=1e-5)


def test_what_cannot_be_exported_is_refused():
    model, x = mlp(1, (1,), "mean"), features(1, "dense")
    with pytest.raises(TypeError, match="x must be Features"):
        anyorder.export(model, torch.zeros(3, 3))
    with pytest.raises(TypeError, match="complete index sets, got SparseIndexSet"):
        anyorder.export(model, x, features(1, "sparse").index)


def test_a_model_that_attends_into_nodes_alone():
    torch.manual_seed(0)
    model = Encoder(order_in=2, orders=(2, 0), kernel="elu", **INTO_NODES, **SIZES).eval()
    program = anyorder.export(model, features(2, "sparse")).module()
    for x in (features(2, "sparse", seed=3, num_nodes=9), LOOPS, NO_LOOPS, ONE):
        torch.testing.assert_close(program(**inputs(x)), model(x).values)
