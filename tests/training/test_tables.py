"""Tables from records: means over seeds, and how long runs took."""

from __future__ import annotations

from dataclasses import replace

import pytest

from anyorder.cli import main
from anyorder.training.records import Record
from anyorder.training.tables import Table, render

TABLE = Table("toys", "Toys", datasets=("D",), rows=("A", "B"), metrics=("F1",), paper={("D", "A", "F1"): "0.5"}, digits=2)


def record(row, seed, value, seconds, overrides=()):
    metrics = {"": {"F1": value}, "half": {"F1": value / 2}}
    return Record(f"toys/{row}", "toys", "D", row, "quick", seed, "smaller", overrides, {}, metrics, [], seconds, 1_200)


def test_means_over_seeds_parameters_and_mean_minutes():
    records = [record("B", 0, 0.75, 90), record("A", 0, 0.25, 60), record("A", 1, 0.75, 120)]
    records += [record("A", 2, 9.0, 1, overrides=("changed=1",))]
    assert render(TABLE, records, form="markdown").splitlines()[2:] == [
        "| dataset | scale | row | seeds | F1 | paper | parameters | minutes | note |",
        "|---|---|---|---|---|---|---|---|---|",
        "| D | quick | A | 2 | 0.50 ± 0.25 | 0.5 | 1,200 | 1.5 |  |",
        "| D | quick | B | 1 | 0.75 | - | 1,200 | 1.5 |  |",
        "| D (half) | quick | A | 2 | 0.25 ± 0.12 | - | 1,200 | 1.5 |  |",
        "| D (half) | quick | B | 1 | 0.38 | - | 1,200 | 1.5 |  |",
        "",
        "quick: smaller",
    ]
    text = render(TABLE, records, form="csv").splitlines()
    assert text[1] == "D,A,F1,0.5,0.25,2,quick,0.5,1200,1.5,"


def test_a_metric_that_is_no_number_does_not_hide_the_others():
    shown = render(TABLE, [record("A", 0, float("nan"), 60), record("B", 0, 0.75, 60)], form="markdown")
    assert "| D | quick | A | 1 | nan | 0.5 |" in shown and "| D | quick | B | 1 | 0.75 | - |" in shown


def test_a_run_that_is_to_go_on_is_named_below_its_row():
    first, second = record("A", 0, 0.25, 60), record("A", 1, 0.75, 60)
    shown = render(TABLE, [first, replace(second, scale="full", reduced="", unfinished="3 of 9 epochs")], form="markdown")
    assert "\n\nquick: smaller\nD, full, A, seed 1: 3 of 9 epochs so far\nnot converged: " in shown
    assert "| D | full | A | 1 | 0.75 | 0.5 | 1,200 | 1.0 | not converged |" in shown


def with_curve(row, values, seed=0):
    return replace(record(row, seed, values[-1], 60), history=[{"epoch": float(n), "F1": v} for n, v in enumerate(values)])


def test_a_row_that_was_still_rising_is_marked():
    level, rising = [0.1 * n for n in range(8)] + [0.7, 0.7005], [0.1 * n for n in range(10)]
    shown = render(TABLE, [with_curve("A", level), with_curve("B", rising)], form="markdown")
    assert [line.endswith("| not converged |") for line in shown.splitlines()[4:6]] == [False, True]
    falling = replace(TABLE, lower_is_better=True)
    assert "not converged" not in render(falling, [with_curve("A", rising)])
    assert "not converged" in render(falling, [with_curve("A", rising[::-1])])


def test_seeds_share_one_judgement_and_another_curve_can_be_named():
    up, down = [0.5] * 8 + [0.70, 0.71], [0.5] * 8 + [0.71, 0.70]
    assert "not converged" not in render(TABLE, [with_curve("A", up), with_curve("A", down, seed=1)])
    assert "not converged" in render(TABLE, [with_curve("A", up), with_curve("A", up, seed=1)])
    noisy = [with_curve("A", [0.5] * 8 + [0.7, 0.7 + gain], seed) for seed, gain in enumerate((0.1, -0.09, 0.02))]
    assert "not converged" not in render(TABLE, noisy), "within the standard error"
    assert "not converged" in render(TABLE, [with_curve("A", [0.7] * 9)]), "too few to see a tenth"
    assert "not converged" not in render(TABLE, [with_curve("A", [0.7])]), "evaluated once"
    assert "not converged" not in render(replace(TABLE, curve="accuracy"), [with_curve("A", up)]), "no such curve"


def test_scales_come_from_the_paper_down():
    kinds = ("quick", "full", "medium")
    shown = render(TABLE, [replace(record("A", 0, 0.5, 60), scale=kind, metrics={"": {"F1": 0.5}}) for kind in kinds])
    assert [line.split()[1] for line in shown.splitlines()[4:7]] == ["full", "medium", "quick"]


def test_mixed_precision_is_said_of_a_row():
    mixed = replace(with_curve("A", [0.7] * 9), hardware={"precision": "bf16-mixed"})
    single = replace(record("B", 0, 0.5, 60), hardware={"precision": "32-true"})
    shown = render(TABLE, [mixed, single], form="markdown")
    assert "| not converged, bf16-mixed |" in shown and "\nbf16-mixed: trained and tested in mixed precision" in shown
    assert "bf16" not in render(TABLE, [single])


@pytest.mark.parametrize(("name", "shown"), [("delaunay", 3), ("delaunay/50/", 2), ("delaunay/50/s2g", 1)])
def test_a_name_shows_a_table_a_dataset_of_it_or_a_row(tmp_path, capsys, name, shown):
    for dataset, row in (("50", "S2G"), ("50", "S2G+"), ("20-80", "S2G")):
        place = f"delaunay/{dataset}/{row.lower().replace('+', '-plus')}"
        of_table = replace(with_curve(row, [0.5, 0.75]), table="delaunay", dataset=f"Delaunay ({dataset})", recipe=place)
        replace(of_table, metrics={"": {"F1": 0.75}}).write(tmp_path / place / "record-seed-0.json")
    assert main(["table", name, "--records", str(tmp_path), "--format", "csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + shown
    options = ["--records", str(tmp_path), "--metric", "F1", "--output", str(tmp_path / "curves.svg")]
    assert main(["plot", name, *options]) == 0
    assert main(["plot", name, *options, "--scale", "full"]) == 1
    assert "no record" in capsys.readouterr().err
