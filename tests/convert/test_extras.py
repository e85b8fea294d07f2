"""What importing loads, and what happens where an extra is not installed."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest
import torch

from anyorder import Features, SparseIndexSet, convert
from anyorder.extras import require

EXTRAS = {
    *("numba", "lightning", "torchmetrics", "sklearn", "scipy", "safetensors", "tensorboard", "rich", "psutil", "pandas"),
    *("pyarrow", "torch_geometric", "networkx", "rdkit", "ogb", "uproot", "awkward", "fastjet", "pythia8mc", "xgi"),
    *("gensim", "matplotlib"),
}


def loaded(code):
    """The modules that a fresh process has loaded after some code."""
    code += "\nimport sys; print(*{part for name in sys.modules for part in (name, name.split('.')[0])})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_library_and_a_first_step_load_torch_and_numpy_and_no_extra():
    code = """
import anyorder, anyorder.convert, anyorder.testing
for name in anyorder.__all__: getattr(anyorder, name)
x = anyorder.testing.random_features(2, channels=3, num_graphs=2)
sizes = {"channels_in": 3, "channels": 8, "channels_out": 1, "heads": 2, "head_channels": 4}
for kernel in ("softmax", "relu"):
    anyorder.Encoder(order_in=2, orders=(2, 0), kernel=kernel, **sizes).double()(x).values.sum().backward()
"""
    modules = loaded(code)
    assert {"torch", "numpy"} <= modules
    assert not modules & EXTRAS
    assert "torch._dynamo" not in modules  # takes longer than torch itself


def test_algebra_needs_no_torch():
    modules = loaded("import anyorder.algebra")
    assert not modules & {"torch", "numpy", *EXTRAS}


def test_importing_the_package_alone_costs_nothing():
    assert not loaded("import anyorder") & {"torch", "numpy", *EXTRAS}


@pytest.fixture
def absent(monkeypatch):
    """Make a library look as if it were not installed."""

    def hide(library):
        for name in [library, *sys.modules]:
            if name.split(".")[0] == library:
                monkeypatch.setitem(sys.modules, name, None)

    return hide


def edge():
    return Features(SparseIndexSet(torch.tensor([[0, 1]]), num_nodes=2), torch.ones(1, 1))


@pytest.mark.parametrize(
    ("library", "extra", "calls"),
    [
        ("torch_geometric", "pyg", [lambda: convert.from_pyg(None), lambda: convert.to_pyg(edge())]),
        ("networkx", "pyg", [lambda: convert.from_networkx(None), lambda: convert.to_networkx(edge())]),
        (
            "xgi",
            "hypergraphs",
            [lambda: convert.from_xgi(None), lambda: convert.from_xgi_by_size(None), lambda: convert.to_xgi(edge())],
        ),
    ],
)
def test_a_missing_library_is_named_with_its_extra(absent, library, extra, calls):
    absent(library)
    for call in calls:
        with pytest.raises(ModuleNotFoundError, match=rf"{library}.* is not installed: pip install 'anyorder\[{extra}\]'"):
            call()


def test_hif_and_grids_need_no_extra(absent):
    for library in ("torch_geometric", "networkx", "xgi"):
        absent(library)
    document = convert.to_hif(edge())
    assert convert.from_hif(document, orderings="one").index.tuples.tolist() == [[0, 1]]
    assert convert.to_dense(edge())[0].shape == (1, 2, 2, 1)


def test_a_library_that_is_there_but_broken_says_what_it_misses(monkeypatch, tmp_path):
    (tmp_path / "broken_library.py").write_text("import some_dependency_of_its_own")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="No module named 'some_dependency_of_its_own'"):
        require("broken_library", "pyg")


def test_require_gives_the_module(monkeypatch):
    module = types.ModuleType("made_up")
    monkeypatch.setitem(sys.modules, "made_up", module)
    assert require("made_up", "train") is module
