"""What trainings say while they run, where no bar can be seen."""

from __future__ import annotations

from itertools import count

from anyorder.experiments import find
from anyorder.training.fit import execute
from anyorder.training.progress import EpochLines, shown
from small_runs import QUIET, chains


def said(tmp_path, capsys, seconds, epochs=4):
    """Lines of a training whose clock goes on by so many seconds whenever it is looked at."""
    job = chains("mlp-pi-s", f"schedule.epochs={epochs}")
    ticks = count(step=seconds)
    execute(job, tmp_path, QUIET, callbacks=[EpochLines(job.run, "mine", lambda: next(ticks))])
    return capsys.readouterr().out.splitlines()


def test_a_log_has_a_line_per_epoch_with_scores_and_time(tmp_path, capsys):
    lines = said(tmp_path, capsys, seconds=120)
    assert [line.split(",")[:2] for line in lines] == [["mine", f" epoch {epoch} of 4"] for epoch in (1, 2, 3, 4)]
    assert lines[0].endswith("(2 min, 6 min left)") and lines[-1].endswith("(8 min, 0 s left)")
    assert "loss" in lines[0] and "micro-F1" in lines[0]


def test_a_log_of_short_epochs_has_a_line_a_minute(tmp_path, capsys):
    lines = said(tmp_path, capsys, seconds=25, epochs=7)
    assert [line.split(",")[1] for line in lines] == [" epoch 3 of 7", " epoch 6 of 7"]


def test_the_metric_that_scores_a_task_is_shown_where_none_selects():
    found = {"loss": 0.5, "valid/loss": 0.6, "valid/Acc": 0.9, "valid/F1": 0.7}
    assert shown(found, find("delaunay/50/ours-d").make("quick")) == {"loss": 0.5, "F1": 0.7}
    assert shown({"valid/Acc": 0.9}, find("delaunay/50/ours-d").make("quick")) == {"Acc": 0.9}
