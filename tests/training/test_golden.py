"""No change moves training unseen: ten steps of recipes against committed losses."""

from __future__ import annotations

import json

import pytest

from golden import FILE, RECIPES, losses


@pytest.mark.numeric
@pytest.mark.parametrize("name", RECIPES)
def test_ten_steps_lose_what_they_did(name, tmp_path):
    assert losses(name, tmp_path) == pytest.approx(json.loads(FILE.read_text())[name], rel=5e-3, abs=1e-4)
