"""Exported models answer in JavaScript what they answer in PyTorch."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import anyorder
from anyorder import INTO_NODES, CompleteIndexSet, Encoder, Features, RandomFeatures, SparseIndexSet
from anyorder.cli import main
from anyorder.errors import InputError
from anyorder.experiments.set_to_graph.edge_metrics import predicted_edges
from anyorder.experiments.set_to_graph.sets import SetSample, collate_sets
from anyorder.testing import random_features
from anyorder.training.web import web_script

SHIPPED = Path(anyorder.__file__).parent / "checkpoints"
MODELS = ("delaunay-1-ours", "delaunay-2-s2g")
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed: nothing here runs JavaScript")


def in_javascript(scripts, cases):
    """The answers of the runtime of the playground."""
    assert NODE is not None
    given = json.dumps({"scripts": scripts, "cases": cases})
    runner = Path(__file__).parent / "forward.js"
    return json.loads(subprocess.run([NODE, runner], input=given, capture_output=True, text=True, check=True).stdout)


def exported(name, folder, tmp_path):
    assert main(["export", str(folder), "--format", "web", "--output", str(tmp_path / "model.js"), "--name", name]) == 0
    return (tmp_path / "model.js").read_text()


@needs_node
@pytest.mark.parametrize("name", MODELS)
def test_shipped_models_answer_the_same_on_100_random_sets(name, tmp_path, capsys):
    random = np.random.default_rng(0)
    sets = [random.random((int(size), 2)) for size in (60, *random.integers(2, 30, 99))]
    script = exported(name, SHIPPED / name, tmp_path)
    answers = in_javascript([script], [{"name": name, "points": points.reshape(-1).tolist()} for points in sets])
    model = anyorder.load(SHIPPED / name).double()  # as JavaScript computes
    assert len(answers) == 100
    for points, answer in zip(sets, answers):
        scaled = ((points.astype(np.float32) - np.float32(0.5)) / np.float32(12**-0.5)).astype(np.float32)
        batch = collate_sets([SetSample(scaled)])
        batch = replace(batch, points=batch.points.double())
        with torch.inference_mode():
            logits = model(batch)
        given = torch.tensor(answer["values"], dtype=torch.float64)
        torch.testing.assert_close(given, logits, atol=1e-3, rtol=1e-4)  # logits of up to 40, and an erf to seven digits
        theirs = {tuple(edge) for edge in predicted_edges(logits, batch)[0].tolist()}
        close = {(i, j) for i, j in zip(*np.where(np.abs(_symmetrised(logits, len(points))) < 1e-3))}
        assert {tuple(edge) for edge in answer["edges"]} ^ theirs <= close


def _symmetrised(logits, size):
    square = logits.reshape(size, size)
    return ((square + square.T) / 2).numpy()


@needs_node
@pytest.mark.parametrize("orders", [(2, 2, 0), (2, 1), (1, 0), (3, 1), (3, 3, 0)])
def test_encoders_of_any_order_answer_the_same(orders):
    torch.manual_seed(0)
    first, *rest = orders
    model = Encoder(order_in=first, orders=rest, channels_in=3, channels=8, channels_out=2, heads=2, head_channels=4).eval()
    cases, expected = [], []
    for seed in range(5):
        generator = torch.Generator().manual_seed(seed)
        x = random_features(first, num_nodes=5, num_graphs=1, density=0.6, dtype=torch.float32, generator=generator)
        cases.append({"name": "model", **_as_case(x)})
        with torch.inference_mode():
            expected.append(model(x).rows)
    for answer, rows in zip(in_javascript([web_script("model", model)], cases), expected):
        torch.testing.assert_close(torch.tensor(answer["values"]).reshape(rows.shape), rows, atol=1e-5, rtol=1e-4)


@needs_node
def test_nodes_alone_may_attend():
    torch.manual_seed(2)
    sizes = {"channels_in": 3, "channels": 8, "channels_out": 2, "heads": 2, "head_channels": 4}
    model = Encoder(order_in=2, orders=(2, 2), **sizes, **INTO_NODES).eval()
    x = random_features(2, num_nodes=5, num_graphs=1, density=0.6, channels=3, dtype=torch.float32)
    with torch.inference_mode():
        rows = model(x).rows
    [answer] = in_javascript([web_script("m", model)], [{"name": "m", **_as_case(x)}])
    torch.testing.assert_close(torch.tensor(answer["values"]).reshape(rows.shape), rows, atol=1e-5, rtol=1e-4)


@needs_node
def test_a_target_may_be_given():
    torch.manual_seed(1)
    model = Encoder(order_in=1, orders=(1, 2), channels_in=2, channels=8, channels_out=1, heads=2, head_channels=4).eval()
    x = Features.of_rows(CompleteIndexSet(1, torch.tensor([4])), torch.randn(4, 2))
    some = torch.tensor([[0, 1], [1, 1], [3, 0]])
    with torch.inference_mode():
        rows = model(x, target=SparseIndexSet(some, num_nodes=4)).rows
    [answer] = in_javascript([web_script("m", model)], [{"name": "m", **_as_case(x), "target": some.tolist()}])
    torch.testing.assert_close(torch.tensor(answer["values"]).reshape(rows.shape), rows, atol=1e-5, rtol=1e-4)


def _as_case(x):
    rows = x.rows.flatten().tolist()
    return {"tuples": x.index.tuples.tolist(), "order": x.order, "numNodes": x.index.num_nodes, "rows": rows}


def test_what_the_runtime_does_not_know_is_refused():
    wanted = {
        "order_in": 1,
        "orders": (1,),
        "channels_in": 1,
        "channels": 2,
        "channels_out": None,
        "heads": 1,
        "head_channels": 2,
    }
    with pytest.raises(InputError, match="only softmax attention"):
        web_script("m", Encoder(**wanted, kernel=RandomFeatures()))
    with pytest.raises(InputError, match="models of class Linear"):
        web_script("m", torch.nn.Linear(1, 1))
