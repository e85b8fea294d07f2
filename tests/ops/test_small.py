"""Small inputs: loops that are there are used, and none is compiled for them in the background."""

from __future__ import annotations

import pytest
import torch

from anyorder.layers import Elu
from anyorder.layouts import Queries, Segments
from anyorder.ops import segment, segment_cpu
from anyorder.ops.backends import MANY, Compiled, use_backend, use_compiling
from anyorder.ops.features import Problem


class Known:
    """Loops that are there or not, and what was begun."""

    def __init__(self, there: bool) -> None:
        self.there, self.begun = there, 0

    def has(self, *key: object) -> bool:
        return self.there

    def get(self, *key: object) -> bool | None:
        self.begun += not self.there
        return self.there or None


def _problem(size: int) -> Problem:
    """About so many numbers in phi(k) v^T: 4 features of each of 8 heads, 3 channels and the norm."""
    rows = max(1, size // (2 * 8 * 4 * 4))
    groups = Segments.build(torch.zeros(rows, dtype=torch.int64), 1)
    query, value = torch.ones(rows, 1, 8, 4), torch.ones(rows, 1, 8, 3)
    made = Problem(query, query, value, groups, Queries.build([groups]), Elu().feature_map(None), True)
    assert size / 2 <= made.size <= 2 * size
    return made


@pytest.mark.parametrize(
    ("size", "compiling", "there", "version", "begun"),
    [
        (segment.SMALL // 4, "wait", True, "reference", 0),
        (segment.SMALL // 4, "background", True, "reference", 0),
        (segment.PAYS // 2, "background", False, "reference", 0),
        (segment.PAYS // 2, "background", True, "numba", 0),
        (segment.PAYS // 2, "never", True, "numba", 0),
        (segment.PAYS // 2, "wait", True, "numba", 0),
        (segment.PAYS // 2, "wait", False, "reference", 1),  # real ones would be there after that
        (segment.PAYS * 4, "background", False, "reference", 1),
        (segment.PAYS * 4, "background", True, "numba", 0),
    ],
)
def test_who_computes(monkeypatch, size, compiling, there, version, begun):
    known = Known(there)
    monkeypatch.setattr(segment_cpu, "compiled", known)
    with use_backend("auto"), use_compiling(compiling):
        assert segment.choose(_problem(size)) == version
    assert known.begun == begun


@pytest.mark.parametrize("compiling", ["background", "never"])
def test_whoever_asks_often_has_them_compiled(compiling):
    compiled = Compiled(lambda key: "built", lambda key: "built ahead")
    with use_compiling(compiling):
        assert not any(compiled.has("key") for _ in range(MANY - 1))
        assert not compiled._started
        compiled.has("key")
        for thread in compiled._started.values():
            thread.join()
        assert compiled.has("key") == (compiling == "background")
        assert not compiled.has("another")
