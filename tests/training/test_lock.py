"""One process at a time in a run folder; signals save the state, say how to resume, and have their exit codes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from anyorder.training import lock
from anyorder.training.fit import carry_out, execute, resume
from anyorder.training.lock import LOCK, FolderInUseError, holding
from anyorder.training.outcome import TRAINED
from anyorder.training.records import Record
from anyorder.training.states import read_state
from forked import run_script
from small_runs import EVERY_STEP, QUIET, Interrupted, chains, interrupt_at, same, settings, weights

HOLD = "import sys, time; from pathlib import Path; from anyorder.training.lock import holding\n"
HOLD += "with holding(Path(sys.argv[1])):\n    print('held', flush=True)\n    time.sleep(600)"


def hold(folder: Path) -> subprocess.Popen[str]:
    """A process that holds the lock of a folder."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


def test_a_second_start_says_who_holds_the_folder_and_a_killed_holder_releases_it(tmp_path):
    folder = tmp_path / "run"
    process = hold(folder)
    try:
        known = rf"in use by process {process.pid} on {socket.gethostname()} since 20.*: wait for it"
        with pytest.raises(FolderInUseError, match=known):
            carry_out(chains(), folder, QUIET)
        assert not (folder / "config.json").exists()
    finally:
        process.kill()
        process.communicate()
    carry_out(chains(), folder, QUIET)
    assert not (folder / LOCK).exists()


def test_a_folder_without_locks_goes_by_the_process_and_by_the_time(tmp_path, monkeypatch):
    process = hold(tmp_path / "run")
    monkeypatch.setattr(lock, "_lock", lambda handle: None)
    try:
        with pytest.raises(FolderInUseError, match=f"process {process.pid}"), holding(tmp_path / "run"):
            pass
    finally:
        process.kill()
        process.communicate()
    with holding(tmp_path / "run"):
        pass


@pytest.mark.parametrize("works", [True, None])
def test_a_holder_on_another_machine_is_alive_as_long_as_it_touches_the_file(works, tmp_path, monkeypatch):
    if works is None:
        monkeypatch.setattr(lock, "_lock", lambda handle: None)
    path = tmp_path / LOCK
    path.write_text(json.dumps({"process": 1, "started": 1.0, "machine": "elsewhere", "since": "2026-01-01"}))
    with (
        pytest.raises(FolderInUseError, match=r"process 1 on elsewhere since 2026-01-01.*again in 90 seconds"),
        holding(tmp_path),
    ):
        pass
    os.utime(path, (time.time() - 100, time.time() - 100))
    with holding(tmp_path):
        assert json.loads(path.read_text())["process"] == os.getpid()


def test_a_holder_touches_its_file(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "BEAT", 0.01)
    with holding(tmp_path):
        os.utime(tmp_path / LOCK, (0, 0))
        ended = time.monotonic() + 10
        while (tmp_path / LOCK).stat().st_mtime == 0 and time.monotonic() < ended:
            time.sleep(0.01)
        assert (tmp_path / LOCK).stat().st_mtime > 0


def test_a_lock_of_half_a_word_is_nobodys(tmp_path):
    (tmp_path / LOCK).write_text('{"process": 1, "mach')
    with holding(tmp_path):
        pass


@pytest.mark.parametrize("said", [b"[" * 4000, b'{"machine": HERE, "process": 9%s}' % (b"9" * 400), b"\xff", b"[]"])
def test_a_lock_that_says_nonsense_is_nobodys(said, tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "_lock", lambda handle: None)  # as on a folder without locks: what it says is looked at
    (tmp_path / LOCK).write_bytes(said.replace(b"HERE", json.dumps(socket.gethostname()).encode()))
    with holding(tmp_path):
        assert json.loads((tmp_path / LOCK).read_text())["process"] == os.getpid()


ORPHANED = """
import os, signal, sys, time
from pathlib import Path
from anyorder.training.lock import holding

with holding(Path(sys.argv[1])):
    begun, begin = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(begin, b"!")
        time.sleep(600)
    os.read(begun, 1)  # the child runs
    print(child, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_the_worker_of_a_killed_training_does_not_hold_its_folder(tmp_path):
    run = subprocess.Popen([sys.executable, "-c", ORPHANED, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    child = int(run.stdout.readline())
    try:
        assert run.wait() == -signal.SIGKILL
        with holding(tmp_path):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        run.stdout.close()


def test_a_folder_into_which_nothing_came_is_gone(tmp_path):
    with pytest.raises(RuntimeError), holding(tmp_path / "run"):
        raise RuntimeError
    assert not (tmp_path / "run").exists()


def test_the_state_is_read_once(tmp_path, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        interrupt_at(patch, 4)
        carry_out(chains(), tmp_path, EVERY_STEP)
    read = []
    monkeypatch.setattr("anyorder.training.fit.read_state", lambda path: read.append(path) or read_state(path))
    monkeypatch.setattr("anyorder.training.states.read_state", lambda path: pytest.fail("read again"))
    resume(tmp_path, QUIET)
    assert read == [tmp_path / "last.ckpt"]


SIGNALLED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # who starts tests in the background may have it ignored
from anyorder.cli import main
from anyorder.training.module import TaskModule

train = TaskModule.training_step

def step(self, *args):
    if self.trainer.fit_loop.epoch_loop.total_batch_idx == 1:
        os.kill(os.getpid(), int(sys.argv[1]))
    return train(self, *args)

TaskModule.training_step = step
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_saves_the_state_and_says_how_to_go_on(number, code, tmp_path):
    line = ["run", "chains/mlp-pi-s", *settings(), "--out", tmp_path, "--quiet"]
    ended = run_script(SIGNALLED, [int(number), *line])
    folder = chains().folder(tmp_path)
    assert ended.returncode == code, ended.stderr
    assert f"its state is saved: `anyorder resume {folder}` resumes it" in ended.stderr and "Traceback" not in ended.stderr
    assert read_state(folder / "last.ckpt")["anyorder"]["place"] == [0, 2]  # after the step in which it came
    whole = execute(chains(), tmp_path / "whole", QUIET)
    assert resume(folder, QUIET).history == whole.history
    assert same(weights(folder), weights(chains().folder(tmp_path / "whole")))


def test_run_all_stops_at_a_signal(tmp_path):
    line = ["run", "chains", "--all", *settings(), "--out", tmp_path, "--quiet"]
    ended = run_script(SIGNALLED, [int(signal.SIGTERM), *line])
    assert ended.returncode == 143, ended.stderr
    assert len(list(tmp_path.rglob("last.ckpt"))) == 1 and "anyorder resume" in ended.stderr


BEFORE = """
import os, signal, sys
from anyorder.cli import main
from anyorder.experiments.chains.task import Chains

Chains.load = lambda self, **place: os.kill(os.getpid(), signal.SIGTERM)
sys.exit(main(sys.argv[1:]))
"""


def test_a_signal_before_the_first_step_says_to_run_again(tmp_path):
    line = ["run", "chains/mlp-pi-s", *settings(), "--out", tmp_path / "runs", "--quiet"]
    ended = run_script(BEFORE, line)
    assert ended.returncode == 143 and "terminated; nothing was trained yet: run the command again" in ended.stderr
    assert not chains().folder(tmp_path / "runs").exists()


def test_a_run_that_is_killed_before_its_last_table_is_not_finished_and_ends_the_same(tmp_path):
    first = carry_out(chains(), tmp_path / "run", QUIET, then=TRAINED)
    assert Record.read(tmp_path / "run" / "record.json").unfinished == first.unfinished == TRAINED
    again = carry_out(chains(), tmp_path / "run", QUIET)
    assert not again.unfinished and again.metrics == first.metrics and again.history == first.history
    assert not [*(tmp_path / "run").glob("best-*")]
