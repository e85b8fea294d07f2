"""Damaged weights and states are refused, whichever bit it is; records cannot lead anywhere or speak to a terminal."""

from __future__ import annotations

import dataclasses
import json
import random
import shutil
import zipfile

import pytest
import safetensors.torch
import torch

from anyorder.errors import InputError
from anyorder.training.checkpoints import load_model, load_run
from anyorder.training.fit import carry_out
from anyorder.training.jobs import Job
from anyorder.training.records import Record, collect
from anyorder.training.states import read_state
from anyorder.weights import CHECKSUM, load_weights, save_weights
from small_runs import EVERY_STEP, QUIET, Interrupted, chains, interrupt_at


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A finished run, and the state of an interrupted one."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    carry_out(chains(), folder, QUIET)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Interrupted):
        interrupt_at(patch, 4)
        carry_out(chains(), folder.parent / "stopped", EVERY_STEP)
    shutil.copy(folder.parent / "stopped" / "last.ckpt", folder / "last.ckpt")
    return folder


def flips(raw: bytes, count: int):
    """The same bytes with one bit changed, at places spread over all of them and drawn by a fixed seed."""
    places = random.Random(0).sample(range(8 * len(raw)), count)
    for place in places:
        changed = bytearray(raw)
        changed[place // 8] ^= 1 << place % 8
        yield place, bytes(changed)


def test_no_bit_of_the_weights_can_change_unseen(trained, tmp_path):
    _, model = load_model(trained)
    known = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    raw = (trained / "model.safetensors").read_bytes()
    accepted = []
    for place, changed in flips(raw, 300):
        (tmp_path / "x.safetensors").write_bytes(changed)
        try:
            load_weights(tmp_path / "x.safetensors", model)
        except InputError as error:
            assert "x.safetensors" in str(error)
            continue
        accepted.append(place)
        assert all(torch.equal(model.state_dict()[name], tensor) for name, tensor in known.items())
    header = 8 + int.from_bytes(raw[:8], "little")
    assert all(place // 8 < header for place in accepted)  # such as the name of the checksum itself
    assert len(accepted) < 10


def test_no_bit_of_a_training_state_can_change_unseen(trained, tmp_path):
    raw = (trained / "last.ckpt").read_bytes()
    for place, changed in flips(raw, 300):
        (tmp_path / "x.ckpt").write_bytes(changed)
        try:
            read_state(tmp_path / "x.ckpt")
        except InputError as error:
            assert "x.ckpt" in str(error)
        else:
            pytest.fail(f"bit {place} of {8 * len(raw)} was changed and the state was read")


@pytest.mark.parametrize("name", ["config.json", "job.json"])
def test_no_bit_of_what_a_model_is_made_of_can_change_unseen(name, trained, tmp_path):
    whole = Job.read(trained)
    for file in ("config.json", "job.json"):
        shutil.copy(trained / file, tmp_path / file)
    raw, accepted = (trained / name).read_bytes(), []
    for place, changed in flips(raw, 300):
        (tmp_path / name).write_bytes(changed)
        try:
            read = Job.read(tmp_path)
        except InputError as error:
            assert name in str(error)
            continue
        accepted.append(raw[place // 8])
        assert read == whole
    assert all(byte in b" \n" for byte in accepted)  # white space that became other white space


def test_a_file_changed_by_hand_says_how_it_is_meant(trained, tmp_path):
    config = json.loads((trained / "config.json").read_text())
    config["run"]["seed"] = 5
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"config\.json is damaged.* remove its entry 'sha256'"):
        load_run(tmp_path)
    del config["sha256"]  # so are those of earlier versions
    (tmp_path / "config.json").write_text(json.dumps(config, indent=4, sort_keys=True))
    assert load_run(tmp_path)[0].seed == 5


def test_weights_and_states_without_a_checksum_are_read(trained, tmp_path):
    _, model = load_model(trained)
    safetensors.torch.save_file(model.state_dict(), tmp_path / "old.safetensors")
    load_weights(tmp_path / "old.safetensors", model)
    state = read_state(trained / "last.ckpt")
    torch.save(state, tmp_path / "old.ckpt")
    assert read_state(tmp_path / "old.ckpt")["global_step"] == state["global_step"]


def test_a_state_cannot_announce_more_than_its_file_holds(trained, tmp_path):
    torch.save(read_state(trained / "last.ckpt"), tmp_path / "old.ckpt")
    raw = bytearray((tmp_path / "old.ckpt").read_bytes())
    with zipfile.ZipFile(tmp_path / "old.ckpt") as archive:
        last = archive.infolist()[-1]
    entry = raw.rindex(b"PK\x01\x02", 0, raw.rindex(last.filename.encode()))  # of the directory at the end of the file
    raw[entry + 20 : entry + 28] = (2**32 - 2).to_bytes(4, "little") * 2
    (tmp_path / "bad.ckpt").write_bytes(bytes(raw))
    with pytest.raises(InputError, match=r"bad\.ckpt: its part .* announces 4,294,967,294 bytes"):
        read_state(tmp_path / "bad.ckpt")


def test_a_pickle_that_torch_asserts_against_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "bad.ckpt", "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02K\x07Q.")  # 7 where the place of a tensor belongs
        archive.writestr("archive/version", b"3\n")
    with pytest.raises(InputError, match=r"bad\.ckpt: its pickle is damaged: .*tuple"):
        read_state(tmp_path / "bad.ckpt")


def test_the_checksum_is_in_the_file_itself(trained):
    with safetensors.safe_open(trained / "model.safetensors", framework="pt") as file:
        assert len(file.metadata()[CHECKSUM]) == 64


def test_weights_that_are_not_finite_are_refused(trained, tmp_path):
    _, model = load_model(trained)
    next(model.parameters()).data.fill_(float("nan"))
    save_weights(tmp_path / "x.safetensors", model)
    with pytest.raises(InputError, match=r"x\.safetensors is damaged or of a failed training.* not finite"):
        load_weights(tmp_path / "x.safetensors", model)


@pytest.mark.parametrize("setting", ["layers", "channels"])
def test_a_configuration_cannot_ask_for_more_than_the_weights_hold(setting, trained, tmp_path):
    shutil.copytree(trained, tmp_path / "run")
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    config["run"]["model"][setting] = 10**7
    del config["sha256"]
    (tmp_path / "run" / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"config\.json|model\.safetensors does not belong"):
        load_model(tmp_path / "run")


@pytest.mark.parametrize(("where", "channels"), [("model", 10**7), ("model", 2**31), ("shapes", 2**31)])
def test_not_even_one_beyond_all_sizes_takes_memory(where, channels, tmp_path):
    """The shapes of such a model cannot be worked out without memory: a product of its widths overflows."""
    pytest.importorskip("torch_geometric")
    carry_out(chains("gcn"), tmp_path / "run", QUIET)
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    if where == "model":
        config["run"]["model"]["channels"] = channels
    else:
        config["shapes"] = {name: channels if name == "channels_in" else size for name, size in config["shapes"].items()}
        assert channels in config["shapes"].values()
    del config["sha256"]
    (tmp_path / "run" / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"config\.json|model\.safetensors does not belong") as caught:
        load_model(tmp_path / "run")
    assert "memory" not in str(caught.value)


@pytest.mark.parametrize("recipe", ["../../outside", "/tmp/outside", "chains/../../outside", "a/./b", "a//b", ""])
def test_a_record_cannot_lead_out_of_the_folder(recipe, trained, tmp_path):
    record = dataclasses.replace(Record.read(trained / "record.json"), recipe=recipe, overrides=())
    record.write(tmp_path / "runs" / "record.json")
    with pytest.raises(InputError, match="expected small letters, digits and hyphens"):
        collect(tmp_path / "runs", tmp_path / "results")
    assert not (tmp_path / "outside").exists() and not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    "change", [{"row": "\x1b[2Jred"}, {"metrics": {"": {"\x1b]0;x\x07": 1.0}}}, {"reduced": "a\u202eb"}]
)
def test_a_record_cannot_speak_to_the_terminal(change, trained, tmp_path):
    dataclasses.replace(Record.read(trained / "record.json"), **change).write(tmp_path / "record.json")
    with pytest.raises(InputError, match=r"record\.json: a name holds control characters") as caught:
        Record.read(tmp_path / "record.json")
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    "change", [{"metrics": {"": {"F1": "high"}}}, {"history": [1]}, {"wall_seconds": "long"}, {"row": 3}, {"overrides": [1]}]
)
def test_a_record_of_wrong_kinds_is_refused_with_its_file(change, trained, tmp_path):
    dataclasses.replace(Record.read(trained / "record.json"), **change).write(tmp_path / "record.json")
    with pytest.raises(InputError, match=r"record\.json: "):
        Record.read(tmp_path / "record.json")
