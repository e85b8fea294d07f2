"""How far a reader walks: the files and calls of one forward pass of the README's model."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import torch

import anyorder
from anyorder import Encoder, Features, RandomFeatures, SparseIndexSet

HOME = Path(anyorder.__file__).parent


def walk() -> Counter[str]:
    """Calls of our functions by file, in a pass that finds its plan built."""
    pairs = torch.tensor([[0, 0], [1, 1], [2, 2], [0, 1], [1, 0], [1, 2], [2, 1]])
    x = Features(SparseIndexSet(pairs, num_nodes=3), torch.randn(7, 5))
    model = Encoder(
        order_in=2,
        orders=(2, 2, 0),
        channels_in=5,
        channels=32,
        channels_out=1,
        heads=4,
        head_channels=8,
        kernel=RandomFeatures(kind="relu"),
    )
    model(x)
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(f"{HOME}/"):
            calls[frame.f_code.co_filename.removeprefix(f"{HOME}/")] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        model(x)
    finally:
        sys.setprofile(before)
    return calls


def test_a_forward_pass_is_a_short_walk():
    calls = walk()
    assert len(calls) <= 12, calls
    assert 100 < calls.total() <= 800, calls


def test_the_documented_way_is_the_way():
    page = (HOME.parents[1] / "docs" / "core.md").read_text()
    table = page.partition("## The way through the files")[2].partition("## Words")[0]
    assert set(re.findall(r"^\| `([a-z_/]+\.py)`", table, re.MULTILINE)) == set(walk())
