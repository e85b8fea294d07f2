"""How far a reader walks: the files and calls of one forward pass of the README's model."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from runpy import run_path
from types import FrameType

import anyorder

HOME = Path(anyorder.__file__).parent


def walk() -> Counter[str]:
    """Calls of our functions by file, in a pass that finds its plan built."""
    example = run_path(str(HOME.parents[1] / "examples" / "quickstart.py"))
    model, x = example["model"], example["x"]
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
