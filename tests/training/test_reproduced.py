"""What was reproduced, in words that follow from records."""

from __future__ import annotations

from dataclasses import replace

import pytest

from anyorder.experiments import RECIPES, TABLES
from anyorder.training.records import Record
from anyorder.training.reproduced import page, summarise
from anyorder.training.tables import Claim, Table

PAPER = {("D", "Ours", "F1"): "0.90", ("D", "Other", "F1"): "0.80"}
CLAIM = Claim("Table 9, D", "D", ("F1",), "Ours", "Other")
TABLE = Table("toys", "Toys", ("D",), ("Other", "Ours"), ("F1",), PAPER, 2, claims=(CLAIM,))


def record(row: str, value: float, *, seed: int = 0, scale: str = "full", dataset: str = "D") -> Record:
    metrics = {"": {"F1": value}}
    return Record(f"toys/{row}", "toys", dataset, row, scale, seed, "", (), {}, metrics, [], 60, 10)


def last_line(table: Table, records: list[Record]) -> str:
    return summarise([table], records).splitlines()[-1]


def test_values_stand_beside_the_papers() -> None:
    head, rule, line = summarise([TABLE], [record("Ours", 0.91), record("Other", 0.7)]).splitlines()
    assert head.count("|") == rule.count("|") == line.count("|")
    assert line == (
        "| Table 9, D | the same | full | F1 | Ours | 1 | 0.91 | 0.90 | Other | 1 | 0.70 | 0.80 | "
        "value reached; ahead of the rival |"
    )


def test_the_page_holds_the_table() -> None:
    records = [record("Ours", 0.91), record("Other", 0.7)]
    assert page([TABLE], records).startswith("# What was reproduced\n") and summarise([TABLE], records) in page(
        [TABLE], records
    )


@pytest.mark.parametrize(
    ("ours", "other", "verdict"),
    [
        ((0.8911,), (0.7,), "value reached; ahead of the rival"),
        ((0.889,), (0.9,), "value not reached; behind the rival"),
        ((0.92, 0.90), (0.90, 0.91), "value reached; level with the rival"),
        ((0.9,), (), "value reached; rival not run"),
        ((), (0.9,), "not run"),
    ],
)
def test_verdicts(ours: tuple[float, ...], other: tuple[float, ...], verdict: str) -> None:
    records = [record("Ours", value, seed=n) for n, value in enumerate(ours)]
    records += [record("Other", value, seed=n) for n, value in enumerate(other)]
    assert last_line(TABLE, records).endswith(f"| {verdict} |")


def test_the_largest_scale_that_both_have_is_compared_after_the_largest_of_ours() -> None:
    records = [record("Ours", 0.9, scale="medium"), record("Ours", 0.6, scale="quick"), record("Other", 0.5, scale="quick")]
    before, last = summarise([TABLE], records).splitlines()[-2:]
    assert before.endswith("| value reached; rival not run at this scale; medium scale |") and "| Other | 0 | - |" in before
    assert last.endswith("| value not reached; ahead of the rival; quick scale |")


def test_less_is_better_for_errors() -> None:
    table = replace(TABLE, lower_is_better=True)
    assert last_line(table, [record("Ours", 0.85), record("Other", 0.9)]).endswith("| value reached; ahead of the rival |")
    assert last_line(table, [record("Ours", 0.95), record("Other", 0.9)]).endswith("| value not reached; behind the rival |")


def test_another_dataset_reaches_no_value_and_rows_that_rise_are_named() -> None:
    claim = replace(CLAIM, dataset="E", stands_for="D", paper_rows={"Ours": "Ours"})
    rising = replace(record("Ours", 0.99, dataset="E"), unfinished="1 of 3 epochs")
    line = last_line(replace(TABLE, claims=(claim,)), [rising, record("Other", 0.7, dataset="E")])
    assert line.startswith("| Table 9, D | E | full | F1 | Ours | 1 | 0.99 | 0.90 |")
    assert line.endswith("| ahead of the rival; Ours not converged |")


def test_claims_are_about_rows_that_exist_and_values_of_the_paper() -> None:
    known = {(recipe.dataset, recipe.row) for recipe in RECIPES.values()}
    for table in TABLES.values():
        for claim in table.claims:
            whole = {claim.dataset, claim.dataset.rpartition(" (")[0]}  # a part of a dataset has no recipe of its own
            for row in (claim.ours, claim.rival):
                assert any((dataset, row) in known for dataset in whole)
                name = claim.paper_rows.get(row, row)
                assert all((claim.stands_for or claim.dataset, name, metric) in table.paper for metric in claim.metrics)
