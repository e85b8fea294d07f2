"""Errors of commands: refusals in one line, bugs with their traceback."""

import json
import tempfile
from pathlib import Path

import pytest
import torch

from anyorder.cli import main
from anyorder.training.processes import PeerLost, naming_lost_peers

SHOW = ["show", "chains/gcn"]


@pytest.fixture(autouse=True)
def crashes(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_refusal_is_one_line(capsys, crashes):
    assert main(["show", "chains/gnc"]) == 1
    assert capsys.readouterr().err == "error: unknown recipe 'chains/gnc'; did you mean 'chains/gcn'?\n"
    assert not [*crashes.iterdir()]


@pytest.mark.parametrize(
    "bug", [lambda value: int("x"), lambda value: 1 / 0, lambda value: [].pop(), lambda value: torch.ones(2) @ torch.ones(3)]
)
def test_a_bug_is_not_an_error_of_the_user_and_leaves_its_traceback_in_a_file(bug, capsys, monkeypatch):
    monkeypatch.setattr("anyorder.training.config.to_data", bug)
    assert main(SHOW) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("unexpected error: ")
    text = Path(second.removeprefix("This is a bug. Traceback: ")).read_text()
    assert "Traceback (most recent call last)" in text and "in _show" in text and "test_errors.py" in text


def test_the_traceback_is_printed_where_it_is_asked_for(capsys, crashes):
    for line in (["--traceback", "show", "chains/gnc"], ["show", "chains/gnc", "--traceback"]):
        assert main(line) == 1
        assert "Traceback (most recent call last)" in capsys.readouterr().err
    assert not [*crashes.iterdir()]


def test_what_the_system_refuses_is_no_bug(capsys, crashes):
    assert main(["resume", str(crashes / "nowhere")]) == 1
    assert capsys.readouterr().err.startswith("error: ")


def test_a_broken_connection_between_processes_has_a_type_of_its_own():
    lost = "[../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.1.1]:3219"
    with pytest.raises(PeerLost, match="another process of this run has ended"), naming_lost_peers():
        raise RuntimeError(lost)
    with pytest.raises(PeerLost), naming_lost_peers():
        raise torch.distributed.DistNetworkError("timed out")
    with pytest.raises(RuntimeError, match="compared with its peer") as other, naming_lost_peers():
        raise RuntimeError("a tensor, compared with its peer")
    assert type(other.value) is RuntimeError


def test_show_prints_json(capsys):
    assert main(SHOW) == 0
    assert json.loads(capsys.readouterr().out)["type"] == "Run"
