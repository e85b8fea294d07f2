"""Freed memory is kept for the next tensor, which takes fewer new pages, or returned to the system."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import resource, sys, torch
from anyorder.ops.allocation import keep_freed_memory

if sys.argv[1] == "keep":
    assert keep_freed_memory()

def work():
    few = [torch.ones(2**22 + 1000 * n) for n in range(6)]
    more = [torch.ones(2**23) for n in range(4)]
    del few
    torch.ones(2**24)

for _ in range(3):
    work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc alone can be told")
def test_kept_memory_is_used_again(monkeypatch):
    for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_MAX_", "MALLOC_ARENA_MAX"):
        monkeypatch.delenv(name, raising=False)
    new = {}
    for how in ("keep", "default"):
        ended = subprocess.run([sys.executable, "-c", SCRIPT, how], capture_output=True, text=True, check=True)
        new[how] = int(ended.stdout)
    assert new["keep"] < new["default"] / 5, new


RETURNING = """
import sys, torch
from anyorder.bench.measure import resident_memory
from anyorder.ops.allocation import return_freed_memory

if sys.argv[1] == "return":
    assert return_freed_memory()
torch.ones(2**22)  # 16 MB: what is smaller shares a heap from now on
before = resident_memory()
every = [torch.ones(2**20) for _ in range(32)]
del every[:-1]  # the last lies above all others
print(resident_memory() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc alone can be told")
def test_returned_memory_leaves_no_holes(monkeypatch):
    for name in [name for name in os.environ if name.startswith("MALLOC_")]:
        monkeypatch.delenv(name)
    held = {}
    for how in ("return", "default"):
        ended = subprocess.run([sys.executable, "-c", RETURNING, how], capture_output=True, text=True, check=True)
        held[how] = int(ended.stdout)
    assert held["return"] < 2 * 2**22 < 16 * 2**22 < held["default"], held
