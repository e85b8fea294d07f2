"""Freed memory is kept for the next tensor, which takes fewer new pages, or returned to the system."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from anyorder.ops import allocation
from anyorder.ops.allocation import Holes, resident_memory
from forked import run_script

untold = pytest.mark.skipif(
    not sys.platform.startswith("linux") or any(name.startswith("MALLOC_") for name in os.environ),
    reason="glibc alone can be told, unless variables of the environment have told it",
)

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


@untold
def test_kept_memory_is_used_again():
    new = {}
    for how in ("keep", "default"):
        ended = run_script(SCRIPT, [how])
        new[how] = int(ended.stdout)
    assert new["keep"] < new["default"] / 5, new


RETURNING = """
import sys, torch
from anyorder.ops.allocation import resident_memory, return_freed_memory

if sys.argv[1] == "return":
    assert return_freed_memory()
torch.ones(2**22)  # 16 MB: what is smaller shares a heap from now on
before = resident_memory()
every = [torch.ones(2**20) for _ in range(32)]
del every[:-1]  # the last lies above all others
print(resident_memory() - before)
"""


@untold
def test_returned_memory_leaves_no_holes():
    held = {}
    for how in ("return", "default"):
        ended = run_script(RETURNING, [how])
        held[how] = int(ended.stdout)
    assert held["return"] < 2 * 2**22 < 16 * 2**22 < held["default"], held


GROWING = """
import sys, torch
from anyorder.ops.allocation import keep_freed_memory, resident_memory, without_holes

assert keep_freed_memory()
before, kept = resident_memory(), []
for number in range(100) if sys.argv[1] == "default" else without_holes(range(100)):
    batch = torch.ones(2**21 + 2**13 * number)  # 8 MB, and more than any before: it fits into no hole
    kept.append(torch.ones(2**12))  # lies above the batch, which leaves a hole
    del batch
print(resident_memory() / before)
"""


@untold
def test_a_long_loop_of_batches_of_varying_sizes_holds_no_more_than_at_first():
    grown = {how: float(run_script(GROWING, [how]).stdout) for how in ("without", "default")}
    assert grown["without"] < 1.8 < 2.5 < grown["default"], grown


def test_resident_memory_is_that_of_this_process():
    pages = Path("/proc/self/statm")
    if not pages.exists():
        pytest.skip("this system does not say how much memory a process has")
    known = int(pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    assert resident_memory() == pytest.approx(known, rel=0.1)


def test_batches_that_need_more_get_more(monkeypatch):
    held, given = [100], []
    monkeypatch.setattr(allocation, "resident_memory", lambda: held[0])
    monkeypatch.setattr(allocation, "_give_back", lambda: given.append(held[0]))
    holes = Holes(growth=1.5)
    for number in range(100):
        held[0] = 100 if number < 10 else 400  # what is needed, not holes
        holes.after_item()
    assert holes.most > 400 and len(given) <= 4
