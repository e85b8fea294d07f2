"""What docs/core.md shows is what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import torch

from anyorder import EquivariantLinear, Features, SparseIndexSet
from anyorder.algebra import linear_program, select

PAGE = Path(__file__).parents[1] / "docs" / "core.md"


def test_the_program_on_the_page_is_the_program():
    shown = re.search(r"```text\n(.*?)\n```", PAGE.read_text(), re.DOTALL).group(1)
    assert shown == str(linear_program(2, 1, select(2, 1), "sum"))


def test_the_worked_example_adds_up(capsys):
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL).group(1)
    exec(code, {})
    assert "pool      source (i,j) by j" in capsys.readouterr().out
    pairs = torch.tensor([[0, 0], [1, 1], [2, 2], [0, 1], [1, 0], [1, 2], [2, 1]])
    layer = EquivariantLinear(order_in=2, order_out=1, channels_in=1, channels_out=1, bias=False).double()
    terms = torch.einsum("tc,cio->tio", layer.signs.double(), layer.weight).flatten()
    x = Features(SparseIndexSet(pairs, num_nodes=3), torch.arange(1.0, 8.0, dtype=torch.float64)[:, None])
    w0, w1, w2, w3, w4 = terms
    torch.testing.assert_close(layer(x).rows[1, 0], 2 * w1 + 6 * w0 + 22 * w2 + 11 * w3 + 11 * w4)
