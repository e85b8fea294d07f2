"""Loops shared among threads: every range once, failures reach the caller, with torch's library and without."""

from __future__ import annotations

import threading
from itertools import pairwise

import pytest
import torch

from anyorder.ops import threads


@pytest.fixture(params=["as found", "pool"])
def two_threads(request, monkeypatch):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    if request.param == "pool":
        monkeypatch.setattr(threads, "_openmp", lambda: None)
    yield
    torch.set_num_threads(before)


def test_every_range_is_done_once(two_threads):
    ranges, done = [(n, n + 1) for n in range(100)], []
    threads.each(ranges, lambda a, b: done.append((a, b)))
    assert sorted(done) == ranges


def test_two_ranges_run_at_the_same_time(two_threads):
    both = threading.Barrier(2, timeout=20)
    threads.each([(0, 1), (1, 2)], lambda a, b: both.wait())


def test_a_failure_reaches_the_caller(two_threads):
    def fail(a, b):
        raise ArithmeticError(f"range {a}")

    with pytest.raises(ArithmeticError, match="range"):
        threads.each([(0, 1), (1, 2), (2, 3)], fail)
    done = []
    threads.each([(0, 1), (1, 2)], lambda a, b: done.append(a))
    assert sorted(done) == [0, 1]


@pytest.mark.parametrize("length", [0, 1, 2, 7])
def test_cuts_cover_the_length(two_threads, length):
    marks = [a for a, _ in threads.cuts(length)] + [length]
    assert list(pairwise(marks)) == threads.cuts(length)
    assert marks[0] == 0 and len(threads.cuts(length)) == min(length, 2)
