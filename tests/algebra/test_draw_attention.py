"""The picture of queries and keys: what is compared is the class, by its definition."""

from itertools import product
from pathlib import Path

import pytest

from anyorder.algebra import classes, select
from anyorder.algebra.draw_attention import Compared, draw_attention
from anyorder.algebra.partitions import SetPartition
from anyorder.cli import main


@pytest.mark.parametrize(("k", "l"), [(1, 1), (2, 0), (2, 1), (1, 2), (2, 2)])
def test_every_pair_of_indices_is_in_the_class_that_its_pattern_names(k: int, l: int) -> None:
    made = {cls: Compared.of(cls, 4) for cls in classes(k, l)}
    for j in product(range(4), repeat=l):
        query = tuple(dict.fromkeys(j))
        for i in product(range(4), repeat=k):
            holding = [cls for cls, each in made.items() if cls.target == SetPartition.of(j) and i in each.entries(query)]
            assert len(holding) == 1
            assert holding[0].source == SetPartition.of(i)


@pytest.mark.parametrize(("k", "l"), [(1, 1), (2, 0), (2, 1)])
def test_all_classes_that_weigh_something_are_drawn(tmp_path: Path, k: int, l: int) -> None:
    text = draw_attention(classes(k, l), tmp_path / "attention.svg").read_text(encoding="utf-8")
    for cls in classes(k, l):
        assert (cls.name.replace("->", "→") in text) == (cls.kind != "pointwise")


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="got 3 and 1"):
        draw_attention(classes(3, 1), tmp_path / "attention.png")
    with pytest.raises(ValueError, match="at least one class"):
        draw_attention(select(1, 2, "pointwise"), tmp_path / "attention.png")


def test_the_command_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["classes", "2", "1", "--draw-attention", str(tmp_path / "attention.png")]) == 0
    assert "attention.png" in capsys.readouterr().out
    assert (tmp_path / "attention.png").read_bytes().startswith(b"\x89PNG")
