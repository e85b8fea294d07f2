"""The page for users' own code: its scripts are short and run, its table names tests that are there."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "own_code.md").read_text(encoding="utf-8")
BOUNDS = {"large_graph": 1.2, "order_three": 0.6, "points_to_links": 0.3, "replace_gps": 0.8, "score_triples": 0.3}
"""What the last loss must be below; a constant answer has 1.39, 0.64, 0.69, 0.91 and 0.55."""
SCRIPTS = sorted((ROOT / "examples" / "own_code").glob("*.py"))


def test_the_page_shows_every_script():
    assert sorted(re.findall(r'--8<-- "examples/own_code/(\w+\.py)"', PAGE)) == [script.name for script in SCRIPTS]
    assert len(SCRIPTS) == 5


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_is_short_and_runs(script, capsys):
    assert len(script.read_text(encoding="utf-8").splitlines()) <= 25
    if script.stem in ("replace_gps", "large_graph"):
        pytest.importorskip("torch_geometric", reason="torch_geometric is not installed")
    runpy.run_path(str(script), run_name="__main__")  # in this process: another one would import torch again
    assert float(re.findall(r"loss (\d\.\d{4})", capsys.readouterr().out)[-1]) < BOUNDS[script.stem]


@pytest.mark.parametrize("test", sorted(set(re.findall(r"`(tests/\S+?::\w+)`", PAGE))))
def test_the_table_names_tests(test):
    path, _, name = test.partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_row_of_the_table_has_a_test():
    rows = [line for line in PAGE[PAGE.index("## What works with what") :].splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 13 and all("`tests/" in row for row in rows)
