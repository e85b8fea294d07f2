"""Scripts of the gallery stay short; the build runs them."""

from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parents[2] / "docs" / "gallery").glob("*.py"))


def test_there_are_ten():
    assert len(SCRIPTS) == 10


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_is_short_says_what_it_does_and_draws(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 40
    assert text.startswith('"""')
    assert 'savefig("picture.svg")' in text
