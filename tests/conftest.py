"""Tests take the reference operators unless they are about an operator (tests/ops): nothing else waits for a compiler."""

import atexit
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


SMALL = (
    ("training.forest", "TREES", 10),
    ("experiments.molecules.beside", "TREES", 10),
    ("training.outcome", "_DRAWS", 20),
)
"""What stands beside a training on own data is as small as that: trees of a forest, redraws of an interval."""


def pytest_configure(config: pytest.Config) -> None:
    """A worker that has reported has nothing left to do: taking all libraries apart takes seconds."""
    if hasattr(config, "workerinput"):
        atexit.register(os._exit, 0)


def pytest_collection_finish() -> None:
    """What tests and their libraries are made of stays: garbage is looked for among what a test makes."""
    gc.freeze()
    atexit.register(gc.unfreeze)  # libraries look at the very end for what was left behind
    torch = sys.modules.get("torch")
    if torch is None:
        return
    from anyorder.ops.allocation import keep_freed_memory

    keep_freed_memory()  # as commands do: new pages for each tensor take a twelfth of the time
    if not torch.cuda.is_available():  # each seed is written down for it, with the stack of its caller
        torch.cuda._lazy_call = torch.xpu._lazy_call = lambda *_, **__: None


def pytest_runtest_setup() -> None:
    for module, name, value in SMALL:
        if (loaded := sys.modules.get(f"anyorder.{module}")) is not None:
            setattr(loaded, name, value)
