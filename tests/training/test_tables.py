"""Tables from records: means over seeds, and how long runs took."""

from __future__ import annotations

from dataclasses import replace

from anyorder.training.records import Record
from anyorder.training.tables import Table, render

TABLE = Table("toys", "Toys", datasets=("D",), rows=("A", "B"), metrics=("F1",), paper={("D", "A", "F1"): "0.5"}, digits=2)


def record(row, seed, value, seconds, overrides=()):
    metrics = {"": {"F1": value}, "half": {"F1": value / 2}}
    return Record(f"toys/{row}", "toys", "D", row, "quick", seed, "smaller", overrides, {}, metrics, [], seconds, 1)


def test_means_over_seeds_and_mean_minutes():
    records = [record("B", 0, 0.75, 90), record("A", 0, 0.25, 60), record("A", 1, 0.75, 120)]
    records += [record("A", 2, 9.0, 1, overrides=("changed=1",))]
    assert render(TABLE, records, form="markdown", times=True).splitlines()[2:] == [
        "| dataset | scale | row | seeds | F1 | paper | minutes |",
        "|---|---|---|---|---|---|---|",
        "| D | quick | A | 2 | 0.50 ± 0.25 | 0.5 | 1.5 |",
        "| D | quick | B | 1 | 0.75 | - | 1.5 |",
        "| D (half) | quick | A | 2 | 0.25 ± 0.12 | - |  |",
        "| D (half) | quick | B | 1 | 0.38 | - |  |",
        "",
        "quick: smaller",
    ]
    assert "minutes" not in render(TABLE, records)


def test_a_metric_that_is_no_number_does_not_hide_the_others():
    shown = render(TABLE, [record("A", 0, float("nan"), 60), record("B", 0, 0.75, 60)], form="markdown")
    assert "| D | quick | A | 1 | nan | 0.5 |" in shown and "| D | quick | B | 1 | 0.75 | - |" in shown


def test_a_run_that_is_to_go_on_is_named_below_its_row():
    first, second = record("A", 0, 0.25, 60), record("A", 1, 0.75, 60)
    shown = render(TABLE, [first, replace(second, scale="full", reduced="", unfinished="3 of 9 epochs")], form="markdown")
    assert shown.endswith("\n\nquick: smaller\nD, full, A, seed 1: 3 of 9 epochs so far")
