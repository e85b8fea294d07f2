"""Drawings of equivalence classes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from anyorder.algebra import classes, select
from anyorder.algebra.draw import HEIGHT, RADIUS, WIDTH, Arrangement, draw_classes

pytest.importorskip("matplotlib")

ORDERS = [(k, l) for k in range(4) for l in range(4)]
BEGINNINGS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.mark.parametrize(("k", "l"), ORDERS)
def test_every_node_has_one_role_and_one_place(k: int, l: int) -> None:
    for cls in classes(k, l):
        nodes = Arrangement.of(cls)
        roles = (*nodes.summed, *nodes.shared, *nodes.written)
        assert len(set(roles)) == len(roles) == cls.partition.num_blocks
        assert len(nodes.shared) == len(cls.matching)
        assert len(nodes.summed) == len(cls.unmatched_source)
        assert len(nodes.written) == len(cls.unmatched_target)
        spots = nodes.spots()
        assert len(set(spots.values())) == len(spots)
        assert all(abs(x) + RADIUS < WIDTH / 2 and abs(y) + RADIUS < (HEIGHT - 0.88) / 2 for x, y in spots.values())


def test_input_stands_left_of_output() -> None:
    for cls in classes(3, 3):
        nodes = Arrangement.of(cls)
        x = {name: place[0] for name, place in nodes.spots().items()}
        assert all(x[left] < x[right] for left in nodes.summed for right in (*nodes.shared, *nodes.written))
        assert all(x[left] < x[right] for left in nodes.shared for right in nodes.written)


@pytest.mark.parametrize("suffix", BEGINNINGS)
def test_the_suffix_chooses_the_format(tmp_path: Path, suffix: str) -> None:
    path = draw_classes(classes(1, 2), tmp_path / f"classes{suffix}")
    assert path.read_bytes().startswith(BEGINNINGS[suffix])


@pytest.mark.parametrize(("k", "l"), [(1, 2), (2, 2), (3, 2), (0, 0), (0, 2), (2, 0), (1, 1)])
def test_every_class_is_drawn_under_its_name_and_kind(tmp_path: Path, k: int, l: int) -> None:
    text = draw_classes(classes(k, l), tmp_path / "classes.svg").read_text(encoding="utf-8")
    for cls in classes(k, l):
        assert f">{cls.name.replace('->', '→')}<" in text
    for kind in ("pointwise", "local", "global"):
        members = sum(cls.kind == kind for cls in classes(k, l))
        assert text.count(f">{kind}<") == members + bool(members)


def test_a_selection_is_drawn_alone(tmp_path: Path) -> None:
    text = draw_classes(select(1, 2, "pointwise"), tmp_path / "lightweight.svg").read_text(encoding="utf-8")
    assert "(j) → (i,j)" in text
    assert "(k) → (i,j)" not in text
    assert ">global<" not in text


def test_drawing_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = (draw_classes(classes(2, 1), tmp_path / name).read_bytes() for name in ("a.svg", "b.svg"))
    assert first == second


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\.png, \.svg, \.pdf, got 'classes\.docx'"):
        draw_classes(classes(1, 1), tmp_path / "classes.docx")
    with pytest.raises(ValueError, match="at least one class"):
        draw_classes([], tmp_path / "classes.png")
    with pytest.raises(ValueError, match="one pair of orders"):
        draw_classes([*classes(1, 1), *classes(1, 2)], tmp_path / "classes.png")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        draw_classes(classes(1, 1), tmp_path / "nowhere" / "classes.png")
    assert list(tmp_path.iterdir()) == []


def test_importing_needs_neither_matplotlib_nor_torch() -> None:
    code = "import sys, anyorder.algebra.draw; sys.exit(bool({'matplotlib', 'torch', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
