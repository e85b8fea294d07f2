"""Tests take the reference operators unless they are about an operator (tests/ops): nothing else waits for a compiler."""

import os
from pathlib import Path

os.environ.setdefault("ANYORDER_BACKEND", "reference")  # read when anyorder.ops is imported, and by subprocesses
# What tests share is imported by them, once, and holds no tests.
collect_ignore = [
    str(path.relative_to(Path(__file__).parent))
    for path in Path(__file__).parent.rglob("*.py")
    if not path.name.startswith(("test_", "conftest"))
]
