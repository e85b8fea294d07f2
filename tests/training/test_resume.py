"""An interrupted run is resumed to the result it would have had, to the last bit."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest
import torch

from anyorder.training.fit import Job, carry_out, execute, resume
from anyorder.training.keeper import Keeper
from anyorder.training.session import summary
from forked import run_script
from small_runs import (
    EVERY_STEP,
    QUIET,
    Interrupted,
    chains,
    downhill,
    interrupt_at,
    same,
    settings,
    weights,
)

RANDOM = ("model.dropout=0.2", "model.kernel=RandomFeatures(redraw=2)")  # draws in every step, features every other
VARIANTS = {
    "plain": ("mlp-pi-s", ()),
    "dropout and redrawn features": ("ours-s-phi", RANDOM),
    "accumulated, clipped, decaying": ("mlp-pi-s", ("accumulate=2", "optimiser.clip=0.1", "schedule.decay=linear")),
    "averaged": ("ours-s-phi", (*RANDOM, "optimiser.average=0.5", "accumulate=2")),
    "limited steps": ("mlp-pi-s", ("schedule.max_steps=5", "schedule.warmup_steps=2")),
    "rare evaluation": ("mlp-pi-s", ("schedule.evaluate_every=2", "optimiser.name=adamw", "optimiser.weight_decay=0.1")),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_run_stopped_anywhere_ends_with_the_same_weights_and_metrics(variant, tmp_path):
    row, overrides = VARIANTS[variant]
    job = chains(row, *overrides)
    whole = carry_out(job, tmp_path / "whole", EVERY_STEP)
    for batch in (1, 3, 4):  # in the first epoch, between epochs, in the second
        folder = tmp_path / f"stopped-{batch}"
        with pytest.MonkeyPatch.context() as patch, pytest.raises(Interrupted):
            interrupt_at(patch, batch)
            carry_out(job, folder, EVERY_STEP)
        assert not (folder / "record.json").exists()
        again = resume(folder, QUIET)
        assert same(weights(folder), weights(tmp_path / "whole")), batch
        assert again.metrics == whole.metrics and again.history == whole.history


@pytest.mark.parametrize("variant", ["averaged", "rare evaluation"])
def test_a_run_of_little_time_is_tested_as_far_as_it_is_and_goes_on_when_asked(variant, tmp_path):
    row, overrides = VARIANTS[variant]
    job = chains(row, *overrides)
    whole = execute(job, tmp_path / "whole", QUIET)
    short = replace(QUIET, minutes=1e-9)
    first = execute(job, tmp_path / "short", short)
    assert first.unfinished == f"1 of {job.run.schedule.epochs} epochs" and not whole.unfinished
    assert first.metrics.keys() == whole.metrics.keys() and len(first.history) < len(whole.history)
    assert f"{first.unfinished} so far" in summary(first) and "so far" not in summary(whole)
    last = resume(job.folder(tmp_path / "short"), QUIET)
    assert not last.unfinished and last.metrics == whole.metrics and last.history == whole.history
    assert same(weights(job.folder(tmp_path / "short")), weights(job.folder(tmp_path / "whole")))


def test_a_run_of_little_time_goes_on_with_the_same_call_until_it_is_finished(tmp_path):
    job, short = chains(), replace(QUIET, minutes=1e-9)
    reached = [execute(job, tmp_path, short).unfinished for _ in range(job.run.schedule.epochs)]
    epochs = job.run.schedule.epochs
    assert reached == [*[f"{n} of {epochs} epochs" for n in range(1, epochs)], ""]


def test_the_state_within_an_epoch_says_where_it_goes_on(tmp_path, monkeypatch):
    with pytest.raises(Interrupted):
        interrupt_at(monkeypatch, 5)
        carry_out(chains(), tmp_path, EVERY_STEP)
    state = torch.load(tmp_path / "last.ckpt", weights_only=True)
    assert state["anyorder"]["place"] == [1, 2] and state["global_step"] == 5


def test_a_run_killed_before_its_first_state_starts_again(tmp_path, monkeypatch):
    whole = carry_out(chains(), tmp_path / "whole", QUIET)
    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        interrupt_at(patch, 0)
        carry_out(chains(), tmp_path / "killed", QUIET)
    assert resume(tmp_path / "killed", QUIET).history == whole.history


def test_loaders_with_workers_resume_in_the_right_epoch(tmp_path, monkeypatch):
    machine = replace(EVERY_STEP, workers=1)
    whole = carry_out(chains(), tmp_path / "whole", EVERY_STEP)
    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        interrupt_at(patch, 4)
        carry_out(chains(), tmp_path / "stopped", machine)
    assert resume(tmp_path / "stopped", machine).history == whole.history
    assert same(weights(tmp_path / "stopped"), weights(tmp_path / "whole"))


@pytest.mark.parametrize("batch", [2, 4, 5])
def test_early_stopping_and_the_best_weights_survive_an_interruption(batch, tmp_path, monkeypatch):
    job = downhill(patience=2)
    whole = carry_out(job, tmp_path / "whole", EVERY_STEP)
    with monkeypatch.context() as patch:
        if batch < 5:
            interrupt_at(patch, batch)
        else:  # after the end of training, before the test
            patch.setattr(Keeper, "use_best", lambda *_: (_ for _ in ()).throw(Interrupted))
        with pytest.raises(Interrupted):
            carry_out(job, tmp_path / "stopped", EVERY_STEP)
    again = resume(tmp_path / "stopped", QUIET)
    assert again.history == whole.history and len(again.history) == 5
    assert again.metrics == whole.metrics and again.metrics[""]["weight"] == pytest.approx(2.0, abs=1e-4)


def test_running_again_goes_on_and_does_not_repeat_what_is_finished(tmp_path, monkeypatch):
    job = chains()
    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        interrupt_at(patch, 4)
        execute(job, tmp_path, EVERY_STEP)
    first = execute(job, tmp_path, QUIET)
    again = execute(job, tmp_path, QUIET)
    assert again == first and again.finished == first.finished


def test_seconds_are_counted_over_interruptions(tmp_path, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        interrupt_at(patch, 4)
        carry_out(chains(), tmp_path, EVERY_STEP)
    path = tmp_path / "last.ckpt"
    state = torch.load(path, weights_only=True)
    state["callbacks"]["Keeper"]["seconds"] += 1000.0
    torch.save(state, path)
    assert 1000.0 < resume(tmp_path, QUIET).wall_seconds < 2000.0


def test_resuming_takes_the_machine_that_the_run_began_on(tmp_path, monkeypatch):
    machine = replace(EVERY_STEP, precision="bf16-mixed")
    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        interrupt_at(patch, 4)
        carry_out(chains(), tmp_path, machine)
    assert Job.read(tmp_path)[1] == replace(machine, progress=True)
    assert resume(tmp_path).hardware["precision"] == "bf16-mixed"


def test_words_on_what_a_scale_reduces_are_no_setting(tmp_path, monkeypatch):
    job = chains()
    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        interrupt_at(patch, 4)
        carry_out(job, tmp_path, EVERY_STEP)
    reworded = replace(job, run=replace(job.run, reduced="half of the epochs"))
    assert carry_out(reworded, tmp_path, QUIET).reduced == "half of the epochs"


def test_only_folders_of_runs_are_resumed(tmp_path):
    with pytest.raises(FileNotFoundError, match="not the folder of a run"):
        resume(tmp_path / "missing")
    with pytest.raises(FileNotFoundError, match=r"job\.json does not exist"):
        resume(tmp_path)


KILLED = """
import os, signal, sys
from anyorder.cli import main
from anyorder.training.module import TaskModule

train = TaskModule.training_step

def step(self, *args):
    if self.trainer.fit_loop.epoch_loop.total_batch_idx == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return train(self, *args)

TaskModule.training_step = step
main(sys.argv[1:])
"""


def test_a_run_killed_by_the_system_in_the_middle_of_an_epoch_resumes(tmp_path):
    whole = execute(chains(), tmp_path / "whole", QUIET)
    line = ["run", "chains/mlp-pi-s", *settings(), "--out", tmp_path / "killed", "--save-every", 0, "--quiet"]
    ended = run_script(KILLED, line)
    assert ended.returncode == -signal.SIGKILL
    folder = chains().folder(tmp_path / "killed")
    assert (folder / "last.ckpt").exists() and not (folder / "record.json").exists()
    (folder / ".last.ckpt.part.abcdef.ckpt").write_bytes(b"what the killed process was writing")
    again = resume(folder, QUIET)
    assert same(weights(folder), weights(chains().folder(tmp_path / "whole")))
    assert again.metrics == whole.metrics and again.history == whole.history
    assert not list(folder.glob(".*.part.*"))
