"""Trained models as programs: they answer as the model does, on points as users have them, without this library."""

from __future__ import annotations

import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
import torch

from anyorder.cli import main
from anyorder.errors import InputError
from anyorder.experiments import find
from anyorder.experiments.set_to_graph.delaunay_task import Delaunay
from anyorder.experiments.set_to_graph.jet_task import Jets, JetShapes
from anyorder.experiments.set_to_graph.sets import SetBatch, SetShapes
from anyorder.training.checkpoints import load_model, load_run
from anyorder.training.program import export_program, make_program

SHIPPED = Path(str(files("anyorder"))) / "checkpoints"


def answer(folder, points):
    """What the model of a folder says of a set."""
    _, model = load_model(folder)
    shapes = load_run(folder)[1]
    known = (points - torch.tensor(shapes.mean)) / torch.tensor(shapes.deviation)
    with torch.no_grad():
        return model(SetBatch(known, torch.tensor([len(points)]))).view(len(points), -1)


@pytest.mark.parametrize("name", ["delaunay-1-ours", "delaunay-2-s2g"])
def test_the_program_of_a_shipped_model_answers_as_the_model_on_sets_of_any_size(name):
    run, model = load_model(SHIPPED / name)
    program = make_program(*run.task.program(model, load_run(SHIPPED / name)[1])).module()
    for size in (3, 20):
        points = torch.rand(size, 2, generator=torch.Generator().manual_seed(size))
        torch.testing.assert_close(program(points=points), answer(SHIPPED / name, points), rtol=1e-3, atol=1e-3)


ALONE = """
import sys, torch
path, given, answer = sys.argv[1:]
program = torch._inductor.aoti_load_package(path) if "aoti" in path else torch.export.load(path).module()
torch.save(program(points=torch.load(given)).detach(), answer)
assert "anyorder" not in sys.modules
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["delaunay-1-ours", "delaunay-2-s2g"])
@pytest.mark.parametrize("kind", ["pt2", "aoti"])
def test_the_file_of_a_program_needs_no_anyorder(tmp_path, kind, name, capsys):
    folder, points = SHIPPED / name, torch.rand(11, 2, generator=torch.Generator().manual_seed(0))
    path = tmp_path / f"{kind}.pt2"
    assert main(["export", folder.name, "--format", kind, "--output", str(path)]) == 0
    assert f"{kind}.pt2: " in capsys.readouterr().out
    torch.save(points, tmp_path / "given.pt")
    names = [str(path), str(tmp_path / "given.pt"), str(tmp_path / "answer.pt")]
    subprocess.run([sys.executable, "-c", ALONE, *names], check=True, cwd=tmp_path)
    torch.testing.assert_close(torch.load(tmp_path / "answer.pt"), answer(folder, points), rtol=1e-3, atol=1e-3)


def test_what_is_no_program_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"a program is a .pt2 file, got .*model.js"):
        export_program(SHIPPED / "delaunay-2-s2g", tmp_path / "model.js")
    task = find("chains/ours-s-phi").make("quick").task
    with pytest.raises(InputError, match="cannot be exported as a program: expected a model of sets of points"):
        task.program(torch.nn.Identity(), None)
    with pytest.raises(InputError, match="only ours and S2G are programs of sets of any size, got Identity"):
        Delaunay().program(torch.nn.Identity(), SetShapes(2, 5))
    with pytest.raises(InputError, match="a model of compressed jets is no program"):
        Jets().program(torch.nn.Identity(), JetShapes(2, 5, compressed=True))


def test_a_model_that_comes_along_is_known_by_its_name(tmp_path, capsys):
    path = tmp_path / "model.js"
    assert main(["export", "delaunay-2", "--output", str(path)]) == 0
    assert path.read_text().startswith("// anyorder-web 1: SetToGraph")
    assert main(["export", "delanay", "--output", str(path)]) != 0
    assert "neither a folder of a trained model nor one that comes with the package" in capsys.readouterr().err
