"""What the playground computes beside models: classes and triangulations, as the package has them."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import Delaunay

from anyorder.algebra import classes

PLAYGROUND = Path(__file__).parents[2] / "docs" / "playground"
NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed: nothing here runs JavaScript")


def evaluate(file, expression, given=None):
    names = f"const api = require({str(PLAYGROUND / file)!r}); const given = {json.dumps(given)};"
    code = f"{names} console.log(JSON.stringify({expression}))"
    return json.loads(subprocess.run([NODE, "-e", code], capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("orders", [(k, l) for k in range(1, 5) for l in range(5)])
def test_classes_are_those_of_the_package_in_its_order(orders):
    found = evaluate("classes.js", f"api.classes({orders[0]}, {orders[1]}).map((c) => [c.name, c.kind, c.matching])")
    assert found == [[c.name, c.kind, [list(pair) for pair in c.matching]] for c in classes(*orders)]


def test_triangulations_are_exact():
    random = np.random.default_rng(0)
    sets = [random.random((int(size), 2)) for size in random.integers(3, 70, 60)]
    found = evaluate("geometry.js", "given.map(api.triangulate)", [points.tolist() for points in sets])
    for points, edges in zip(sets, found):
        corners = Delaunay(points).simplices
        sides = np.sort(np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]]), 1)
        assert {tuple(edge) for edge in edges} == {tuple(edge) for edge in sides.tolist()}


def test_few_points_have_few_edges():
    assert evaluate("geometry.js", "[[], [[0, 0]], [[0, 0], [1, 1]]].map(api.triangulate)") == [[], [], [[0, 1]]]
