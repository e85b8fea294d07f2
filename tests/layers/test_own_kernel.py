"""The kernel of CONTRIBUTING.md: one class, and every backend knows it."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest
import torch

from anyorder import EquivariantAttention
from anyorder.ops import segment
from anyorder.ops.backends import use_backend
from anyorder.testing import assert_equivariant, random_features

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    file = tmp_path_factory.mktemp("own") / "exponentials.py"
    file.write_text(next(block for block in blocks if "class Exponentials" in block))
    module = sys.modules["exponentials"] = types.ModuleType("exponentials")
    exec(compile(file.read_text(), str(file), "exec"), module.__dict__)
    return module.Exponentials()


@pytest.mark.parametrize("coupling", ["relaxed", "exact"])
def test_a_kernel_of_ones_own(kernel, coupling):
    torch.manual_seed(0)
    sizes = {"channels": 3, "heads": 2, "head_channels": 2}
    layer = EquivariantAttention(order_in=2, order_out=2, **sizes, kernel=kernel, coupling=coupling).double()
    x = random_features(2)
    assert_equivariant(layer, x)
    rows = x.rows.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda rows: layer(x.with_rows(rows)).rows, (rows,))


def test_other_backends_know_it(kernel, monkeypatch):
    torch.manual_seed(0)
    layer = EquivariantAttention(order_in=2, order_out=1, channels=3, heads=1, head_channels=3, kernel=kernel).double()
    x = random_features(2)
    results = []
    for size, backend in ((segment.PAYS, "reference"), (-1, "reference"), (-1, "products")):
        monkeypatch.setattr(segment, "PAYS", size)
        monkeypatch.setattr(segment, "SMALL", size)
        rows = x.rows.clone().requires_grad_()
        with use_backend(backend):
            out = layer(x.with_rows(rows)).rows
            out.square().sum().backward()
        results.append((out.detach(), rows.grad))
    for other in results[1:]:
        torch.testing.assert_close(other, results[0])
