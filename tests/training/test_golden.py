"""No change moves training unseen: five steps of the recipes of every family against committed losses."""

from __future__ import annotations

import json

import pytest

from golden import FILE, losses, names


@pytest.mark.numeric
@pytest.mark.parametrize("name", names())
def test_five_steps_lose_what_they_did(name, tmp_path):
    assert losses(name, tmp_path) == pytest.approx(json.loads(FILE.read_text())[name], rel=5e-3, abs=1e-4)


def test_every_recipe_that_is_committed_is_looked_at():
    assert sorted(json.loads(FILE.read_text())) == sorted(names())
