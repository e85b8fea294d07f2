"""Tests take the reference operators unless they are about an operator (tests/ops): nothing else waits for a compiler."""

import gc
import os
import sys
from pathlib import Path

import pytest

os.environ.setdefault("ANYORDER_BACKEND", "reference")  # read when anyorder.ops is imported, and by subprocesses
# What tests share is imported by them, once, and holds no tests.
collect_ignore = [
    str(path.relative_to(Path(__file__).parent))
    for path in Path(__file__).parent.rglob("*.py")
    if not path.name.startswith(("test_", "conftest"))
]


def pytest_collection_finish() -> None:
    """What tests and their libraries are made of stays: garbage is looked for among what a test makes."""
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Libraries look at the end for what was left behind."""
    gc.unfreeze()


@pytest.fixture(autouse=True)
def small_baselines(monkeypatch):
    """What stands beside a training on own data is as small as that: trees of a forest, redraws of an interval."""
    forests = [(module, "TREES", 10) for module in ("training.forest", "experiments.molecules.beside")]
    for module, name, value in (*forests, ("training.outcome", "_DRAWS", 20)):
        if (loaded := sys.modules.get(f"anyorder.{module}")) is not None:
            monkeypatch.setattr(loaded, name, value)
