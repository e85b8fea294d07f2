"""Runs from start to table on tiny chains: records, weights, resuming, wrong settings, foreign files."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from anyorder.cli import main
from anyorder.experiments import find
from anyorder.training.checkpoints import load_model
from anyorder.training.config import from_data, override, to_data
from anyorder.training.fit import carry_out, execute, resume
from anyorder.training.jobs import Job
from anyorder.training.run import Optimiser
from anyorder.training.sampling import GlobalBatches
from anyorder.training.states import read_state
from small_runs import QUIET, chains, downhill, weights

TINY = ("task.train_chains=4", "task.train_length=5", "task.test_chains=2", "task.test_length=6", "schedule.epochs=2")


def job(seed=0, *more):
    return Job.of(find("chains/gcn"), scale="quick", seed=seed, overrides=(*TINY, *more))


def test_a_run_leaves_a_record_and_a_model_that_loads(tmp_path):
    record = execute(job(), tmp_path, QUIET)
    assert set(record.metrics[""]) == {"micro-F1", "macro-F1"}
    folder = job().folder(tmp_path)
    _, first = load_model(folder)
    _, second = load_model(folder)
    for a, b in zip(first.state_dict().values(), second.state_dict().values()):
        assert torch.equal(a, b)
    again = execute(job(), tmp_path, QUIET)
    assert again.metrics == record.metrics


def test_an_interrupted_run_goes_on_to_the_same_weights(tmp_path):
    whole = job(1, "schedule.epochs=3")
    execute(whole, tmp_path / "a", QUIET)
    folder = whole.folder(tmp_path / "b")

    class Cut(Exception):
        """The power fails."""

    from lightning.pytorch.callbacks import Callback

    class Break(Callback):
        def on_train_epoch_start(self, trainer, module):
            if trainer.current_epoch == 2:
                raise Cut

    with pytest.raises(Cut):
        execute(whole, tmp_path / "b", QUIET, callbacks=[Break()])
    assert not (folder / "record.json").exists()
    resume(folder, QUIET)
    left, right = load_model(whole.folder(tmp_path / "a"))[1], load_model(folder)[1]
    assert all(torch.equal(a, b) for a, b in zip(left.state_dict().values(), right.state_dict().values()))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("optimiser.learnig_rate=1", "did you mean 'learning_rate'"),
        ("optimiser.learning_rate=fast", "expects float"),
        ("optimiser.name=adm", "adam"),
        ("optimiser.average=1", "average must be at least 0 and below 1, got 1"),
        ("optimiser.clip=1" + "0" * 400, "expects a finite number"),
        ("optimiser.learning_rate=1e999", "expects a finite number"),
        ("optimiser=Optimiser('adam', name='sgd')", "takes each setting once"),
        ("optimiser=Optimiser(**3)", "takes each setting once"),
        ("seed=-1", "Run.seed must be at least 0, got -1"),
        ("nothing", "key=value"),
    ],
)
def test_wrong_settings_are_refused(setting, message):
    with pytest.raises(ValueError, match=message):
        job(0, setting)


def test_configurations_survive_writing():
    run = find("chains/ours-s-phi").make("full")
    assert from_data(json.loads(json.dumps(to_data(run)))) == run
    assert override(run, "schedule.epochs=7").schedule.epochs == 7


def test_foreign_checkpoints_are_refused(tmp_path):
    class Payload:
        def __reduce__(self):
            return (print, ("code ran",))

    path = tmp_path / "last.ckpt"
    torch.save({"state_dict": Payload()}, path)
    refused = r"last\.ckpt is not a whole training state of anyorder and was not read: "
    with pytest.raises(ValueError, match=refused + "it is damaged, or holds more than tensors and plain data") as caught:
        read_state(path)
    assert "\x1b" not in str(caught.value), "torch's advice has colours"
    path.write_bytes(b"PK\x03\x04 cut")
    with pytest.raises(ValueError, match=refused):
        read_state(path)
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "nothing")


@pytest.mark.parametrize("world", [1, 2, 3])
def test_evaluation_neither_drops_nor_repeats(world):
    parts = [list(GlobalBatches(17, batch_size=5, shuffle=False, rank=rank, world=world)) for rank in range(world)]
    seen = sorted(item for part in parts for batch in part for item in batch)
    assert seen == list(range(17))


def test_command_line(tmp_path, capsys):
    sets = [word for setting in TINY for word in ("--set", setting)]
    assert main(["run", "chains/gcn", *sets, "--quiet", "--out", str(tmp_path)]) == 0
    assert main(["run", "chains/gnc", "--out", str(tmp_path)]) == 1
    assert "did you mean" in capsys.readouterr().err
    assert main(["table", "chains", "--records", str(tmp_path), "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("dataset,row,metric,mean,std,seeds,scale,paper")
    assert main(["list", "chains"]) == 0
    assert "chains/ours-s-phi" in capsys.readouterr().out
    assert main(["classes", "2", "2"]) == 0
    assert "15 classes: 5 pointwise, 6 local, 4 global" in capsys.readouterr().out


def test_averaged_weights_are_evaluated_selected_and_kept(tmp_path):
    record = carry_out(downhill(optimiser=Optimiser(learning_rate=1.0, average=0.5), epochs=4), tmp_path, QUIET)
    assert [entry["weight"] for entry in record.history] == pytest.approx([4.0, 3.5, 2.75, 1.875])  # of 4, 3, 2 and 1
    kept = record.metrics[""]["weight"], float(weights(tmp_path)["weight"])
    assert kept == pytest.approx((1.875, 1.875))


@pytest.mark.parametrize("clip", [None, 1.0])
def test_mixed_precision_goes_with_and_without_clipping(clip, tmp_path):
    machine = replace(QUIET, precision="bf16-mixed")
    record = carry_out(downhill(optimiser=Optimiser(learning_rate=1.0, clip=clip), epochs=1), tmp_path, machine)
    assert record.metrics[""]["weight"] == pytest.approx(4.0)


def test_large_seeds_train(tmp_path):
    assert execute(chains(seed=2**40 + 7), tmp_path, QUIET).seed == 2**40 + 7
