"""What people read, word by word: the meaning and the formula of every class of low order, and printed programs.

``texts.md`` was read and found right; ``PYTHONPATH=tests python tests/algebra/test_texts.py`` writes it anew.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from anyorder.algebra import SHARINGS, attention_program, classes, formula, linear_program, meaning

TEXTS = Path(__file__).with_name("texts.md")
ORDERS = [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (2, 0), (1, 2), (2, 1), (2, 2), (3, 1), (1, 3)]


def texts() -> dict[str, str]:
    """A heading for each text."""
    found = {
        f"{k} -> {m}": "\n".join(f"{cls.name}: {meaning(cls)}: {formula(cls)}" for cls in classes(k, m)) for k, m in ORDERS
    }
    for (k, m), reduce in product([(1, 2), (2, 1), (2, 2)], ("sum", "mean")):
        found[f"linear {k} -> {m}, {reduce}"] = str(linear_program(k, m, classes(k, m), reduce))
    for k, m in [(1, 2), (2, 1), (2, 2)]:
        for attention in ("softmax", "relaxed", "exact"):
            program = attention_program(k, m, classes(k, m), (attention, attention), same=k == m)
            found[f"{attention} {k} -> {m}"] = str(program)
    for sharing in SHARINGS:
        program = attention_program(2, 2, classes(2, 2), ("softmax", "relaxed"), same=True, sharing=sharing)
        found[f"softmax and relaxed 2 -> 2, shared: {sharing}"] = str(program)
    return found


def written() -> str:
    return "\n\n".join(f"## {title}\n\n```text\n{text}\n```" for title, text in texts().items()) + "\n"


def known() -> dict[str, str]:
    parts = TEXTS.read_text(encoding="utf-8").split("## ")[1:]
    return {part.split("\n", 1)[0]: part.split("```text\n")[1].split("\n```")[0] for part in parts}


@pytest.mark.parametrize("title", known())
def test_texts_are_as_they_were_read(title):
    assert texts()[title] == known()[title]


def test_none_is_missing():
    assert known().keys() == texts().keys()


if __name__ == "__main__":
    TEXTS.write_text(written(), encoding="utf-8")
