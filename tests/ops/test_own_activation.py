"""Formulas of users in compiled loops: known whenever they were registered, and no part of the loops of others."""

from __future__ import annotations

import pytest

from forked import run_script

pytest.importorskip("numba")

COMMON = """
import os, sys
assert "numba" not in sys.modules, "it has read where its cache is"
os.environ["NUMBA_CACHE_DIR"] = sys.argv[1] + "/cache"
sys.path.insert(0, sys.argv[1])

import torch
from anyorder.layouts import Queries, Segments
from anyorder.ops import segment
from anyorder.ops.backends import use_backend
from anyorder.ops.features import FeatureMap

segment.PAYS = segment.SMALL = -1
torch.manual_seed(0)
query, key, value = (torch.randn(5, 1, 1, 2, dtype=torch.float64) for _ in range(3))
groups = Segments.build(torch.tensor([0, 0, 1, 1, 1]), 2)

def both(kind):
    results = []
    for backend in ("numba", "reference"):
        with use_backend(backend):
            given = (query, key, value, groups, Queries.build([groups]), FeatureMap(kind, None, 0.5), True)
            results.append(segment.segment_attention(*given)[0])
    torch.testing.assert_close(*results)
"""
WITH = """
import squares  # before Numba's loops are there
both("relu")
squares.again()  # and after
both("squares")
both("cubes")
"""
SQUARES = """
from anyorder.ops.activations import register_activation

def squared(s, eps):
    return s * s + eps

def squared_gradient(grad, phi, eps):
    return grad

def cubed(s, eps):
    return s * s * s * s + 2 * eps

register_activation("squares", squared, squared_gradient)

def again():
    register_activation("cubes", cubed, squared_gradient)
"""


def test_loops_of_others_do_not_need_the_module_of_a_user(tmp_path):
    (tmp_path / "squares.py").write_text(SQUARES)
    for script in (WITH, 'both("relu")'):
        ended = run_script(COMMON + script, [tmp_path])
        assert ended.returncode == 0, ended.stderr
        (tmp_path / "squares.py").unlink(missing_ok=True)
