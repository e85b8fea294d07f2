"""Named selections: they hold what a filter over all classes holds, and make nothing else."""

from __future__ import annotations

import pytest

from anyorder.algebra import EquivalenceClass, classes, select
from anyorder.algebra.selections import CRITERIA
from anyorder.cli import main


def _differ_in_at_most_one(cls: EquivalenceClass) -> bool:
    return len(cls.unmatched_source) <= 1 and len(cls.unmatched_target) <= 1


def _in_place(cls: EquivalenceClass) -> bool:
    return all(cls.source.blocks[a] == cls.target.blocks[b] for a, b in cls.matching)


def _aligned(cls: EquivalenceClass) -> bool:
    return all({*cls.source.blocks[a]} & {*cls.target.blocks[b]} for a, b in cls.matching)


FILTERS = {
    "all": lambda cls: True,
    "pointwise": lambda cls: cls.kind == "pointwise",
    "without global": lambda cls: cls.kind != "global",
    "distinct": lambda cls: cls.source.is_distinct and cls.target.is_distinct,
    "match all but one": _differ_in_at_most_one,
    "in place": _in_place,
    "aligned": _aligned,
    "pointwise, aligned": lambda cls: cls.kind == "pointwise" and _aligned(cls),
    "into nodes": lambda cls: cls.target.num_blocks <= 1,
    "into nodes, without global": lambda cls: cls.target.num_blocks <= 1 and cls.kind != "global",
    "distinct, match all but one": lambda cls: (
        cls.source.is_distinct and cls.target.is_distinct and _differ_in_at_most_one(cls)
    ),
    "in place, match all but one": lambda cls: _in_place(cls) and _differ_in_at_most_one(cls),
}


@pytest.mark.parametrize("orders", [(1, 1), (1, 2), (2, 1), (2, 2), (3, 2), (2, 3), (3, 3), (0, 2)])
@pytest.mark.parametrize("name", FILTERS)
def test_a_name_gives_what_a_filter_over_all_classes_gives(name: str, orders: tuple[int, int]) -> None:
    wanted = tuple(cls for cls in classes(*orders) if FILTERS[name](cls))
    if not wanted:
        with pytest.raises(ValueError, match="leaves no class"):
            select(*orders, name)
    else:
        assert select(*orders, name) == wanted


def test_every_name_is_tested() -> None:
    assert {*CRITERIA} <= {*FILTERS}


@pytest.mark.parametrize(("order", "count", "in_place"), [(2, 6, 3), (3, 24, 4), (4, 120, 5), (5, 720, 6)])
def test_how_many_match_all_but_one(order: int, count: int, in_place: int) -> None:
    assert len(select(order, order, "distinct, match all but one")) == count
    assert len(select(order, order, "distinct, match all but one, in place")) == in_place


def test_a_selection_never_lists_the_other_classes() -> None:
    # Order 8 -> 8 has 10,480,142,147 classes: a list of them would neither fit nor end.
    assert len(select(8, 8, "distinct, match all but one, in place")) == 9


def test_a_wrong_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="unknown class selection 'distinkt' \\(did you mean 'distinct'\\?\\)"):
        select(3, 3, "in place, distinkt")


def test_the_command_line_counts_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["classes", "4", "4", "--selection", "distinct, match all but one"]) == 0
    assert "120 classes: 24 pointwise, 96 local, 0 global" in capsys.readouterr().out
