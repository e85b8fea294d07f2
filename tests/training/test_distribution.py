"""Several processes do what one does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from torch import Tensor

from anyorder.training.fit import Job, Machine, execute
from anyorder.training.records import Record
from small_runs import QUIET, chains, command, largest_difference, run_command, settings, weights

# 7 chains in batches of 3: the last step of an epoch has one chain for two processes. 1 chain to validate for two.
# Not softmax: biases of its keys have gradients of rounding errors alone, which Adam makes as large as any other. The same
# holds for the keys of links in the first layer: links of a chain are all alike, so that attention does not depend on them.
ROW, UNEVEN = "ours-s-phi", ("task.valid_chains=1", "optimiser.clip=0.5", "optimiser.average=0.5")


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("alone")
    execute(chains(ROW, *UNEVEN), out, QUIET)
    return chains(ROW, *UNEVEN).folder(out)


LIKE = "layers.0.attention.key.p0_1"


def learned(folder: Path) -> dict[str, Tensor]:
    """The weights that have a gradient to speak of."""
    return {name: weight for name, weight in weights(folder).items() if LIKE not in name}


def check_equal(folder: Path, alone: Path) -> None:
    mine, theirs = Record.read(folder / "record.json"), Record.read(alone / "record.json")
    assert mine.hardware["processes"] == 2 and theirs.hardware["processes"] == 1
    assert largest_difference(learned(folder), learned(alone)) < 1e-5
    assert mine.metrics == theirs.metrics
    for first, second in zip(mine.history, theirs.history, strict=True):
        assert first == pytest.approx(second, abs=1e-6)


def test_two_processes_train_what_one_does(alone, tmp_path):
    line = command("run", f"chains/{ROW}", *settings(*UNEVEN), "--out", tmp_path, "--devices", 2, "--quiet")
    ended = run_command(line)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("micro-F1") == 1, "only one process speaks"
    check_equal(chains(ROW, *UNEVEN).folder(tmp_path), alone)


@pytest.mark.numeric
def test_accumulated_steps_train_what_one_step_does(alone, tmp_path):
    job = chains(ROW, *UNEVEN, "accumulate=3")
    record = execute(job, tmp_path, QUIET)
    whole = Record.read(alone / "record.json")
    assert largest_difference(learned(job.folder(tmp_path)), learned(alone)) < 1e-5
    assert record.metrics == whole.metrics
    assert [entry["step"] for entry in record.history] == [entry["step"] for entry in whole.history]


@pytest.mark.slow
def test_torchrun_starts_the_processes(alone, tmp_path):
    torchrun = Path(sys.executable).with_name("torchrun")
    two = (str(torchrun), "--nproc-per-node", "2")
    line = command("run", f"chains/{ROW}", *settings(*UNEVEN), "--out", tmp_path, "--quiet", launcher=two)
    ended = run_command(line)
    assert ended.returncode == 0, ended.stderr
    check_equal(chains(ROW, *UNEVEN).folder(tmp_path), alone)


@pytest.mark.slow
def test_slurm_starts_the_processes(alone, tmp_path):
    line = command("run", f"chains/{ROW}", *settings(*UNEVEN), "--out", tmp_path, "--quiet")
    shared = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "SLURM_JOB_ID": "4711",
        "SLURM_JOB_NAME": "table",
        "SLURM_NTASKS": "2",
        "SLURM_NTASKS_PER_NODE": "1",
        "SLURM_NNODES": "2",
        "SLURM_NODELIST": "127.0.0.1",
        "SLURM_LOCALID": "0",
    }
    places = [{**shared, "SLURM_PROCID": str(n), "SLURM_NODEID": str(n)} for n in (0, 1)]
    tasks = [subprocess.Popen(line, env=place, stderr=subprocess.PIPE, text=True) for place in places]
    ended = [task.communicate(timeout=600)[1] for task in tasks]
    assert [task.returncode for task in tasks] == [0, 0], ended
    check_equal(chains(ROW, *UNEVEN).folder(tmp_path), alone)


KILLED = """
import os, signal, sys
from anyorder.cli import main
from anyorder.training.module import TaskModule

train = TaskModule.training_step

def step(self, *args):
    if self.trainer.fit_loop.epoch_loop.total_batch_idx == 4 and self.global_rank == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return train(self, *args)

TaskModule.training_step = step
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_two_processes_resume_after_a_kill(alone, tmp_path):
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    job = chains(ROW, *UNEVEN)
    line = ["run", f"chains/{ROW}", *settings(*UNEVEN), "--out", tmp_path, "--devices", 2, "--save-every", 0, "--quiet"]
    ended = run_command([sys.executable, str(script), *map(str, line)])
    assert ended.returncode == -signal.SIGKILL
    folder = job.folder(tmp_path)
    assert (folder / "last.ckpt").exists() and not (folder / "record.json").exists()
    again = run_command(command("resume", folder, "--quiet"))
    assert again.returncode == 0, again.stderr
    check_equal(folder, alone)


@pytest.mark.slow
def test_all_processes_end_when_the_disk_is_full(tmp_path):
    script = tmp_path / "limited.py"
    limit = "import resource, signal, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))"
    script.write_text(f"{limit}\nfrom anyorder.cli import main\nsys.exit(main(sys.argv[1:]))\n")
    line = ["run", f"chains/{ROW}", *settings(*UNEVEN), "--out", tmp_path, "--devices", 2, "--quiet"]
    ended = run_command([sys.executable, str(script), *map(str, line)])
    assert ended.returncode == 1
    assert "could not write" in ended.stderr and "untouched" in ended.stderr and "Traceback" not in ended.stderr


class TestMachine:
    def test_torchrun_says_how_many_processes_there_are(self):
        environment = {"TORCHELASTIC_RUN_ID": "x", "WORLD_SIZE": "6", "LOCAL_WORLD_SIZE": "3"}
        placed = Machine().placed(environment)
        assert (placed.devices, placed.nodes, placed.processes) == (3, 2, 6)
        assert Machine(devices=3, nodes=2).placed(environment).processes == 6
        with pytest.raises(ValueError, match="torchrun has started 3 processes on each of 2 machines"):
            Machine(devices=2).placed(environment)

    def test_slurm_says_how_many_processes_there_are(self):
        assert Machine().placed({"SLURM_NTASKS": "8", "SLURM_NNODES": "2"}).devices == 4
        by_hand = {"SLURM_NTASKS": "8", "SLURM_NNODES": "2", "SLURM_JOB_NAME": "interactive"}
        assert Machine(devices=2).placed(by_hand).processes == 2
        with pytest.raises(ValueError, match="srun has started 1 processes"):
            Machine(devices=2).placed({"SLURM_NTASKS": "1"})

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"precision": "bf16"}, "did you mean 'bf16-mixed'"),
            ({"accelerator": "gpuu"}, "did you mean 'gpu'"),
            ({"precision": "16-mixed", "accelerator": "cpu"}, "16-mixed needs a GPU"),
            ({"devices": 0}, "devices must be at least 1"),
            ({"workers": -1}, "workers must be at least 0"),
            ({"minutes": 0}, "minutes must be more than 0, got 0"),
        ],
    )
    def test_wrong_settings_are_refused(self, settings, message):
        with pytest.raises(ValueError, match=message):
            Machine(**settings)

    def test_more_processes_than_a_batch_has_items_are_refused(self, tmp_path):
        with pytest.raises(ValueError, match="batch_size must be at least"):
            execute(chains("mlp-pi-s", "accumulate=4"), tmp_path, QUIET)

    def test_an_accelerator_that_is_not_there_is_an_error_of_one_line(self, tmp_path):
        with pytest.raises(ValueError, match="cannot run on this machine"):
            execute(chains(), tmp_path, Machine(progress=False, accelerator="cuda"))


def test_a_job_remembers_where_it_runs(tmp_path):
    machine = Machine(devices=2, workers=3, precision="bf16-mixed", data_dir=Path("data"), save_every=7.0)
    job = chains()
    job.write(tmp_path, machine)
    from anyorder.experiments.chains.models import ChainShapes
    from anyorder.training.checkpoints import save_config

    save_config(tmp_path, job.run, ChainShapes(3, 2))
    again, place = Job.read(tmp_path)
    assert again == job and place.devices == 2 and place.workers == 3 and place.save_every == 7.0
    assert place.data_dir == Path("data").absolute()
