"""The worked example of CONTRIBUTING: a package outside of this one registers an experiment, trains, predicts and loads."""

import json
import tomllib
from pathlib import Path

import pytest

from forked import run_script

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_experiment"
SMALL = ["--set", "task.train_sets=60", "--set", "task.test_sets=20", "--set", "schedule.epochs=1"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with what pip would write down of the installed package."""
    folder = tmp_path_factory.mktemp("installed")
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    known = folder / f"{project['name']}-{project['version']}.dist-info"
    known.mkdir()
    (known / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    points = project["entry-points"]["anyorder.experiments"]
    lines = [f"{name} = {value}" for name, value in points.items()]
    (known / "entry_points.txt").write_text("\n".join(["[anyorder.experiments]", *lines, ""]))
    return folder


HERE = """
import os, sys
sys.path[:0] = sys.argv[1:3]
os.chdir(sys.argv[2])
"""


def python(home: Path, script: str, *words: str) -> str:
    """What a new process of somebody who has installed both packages prints."""
    ended = run_script(HERE + script, [EXAMPLE, home, *words])
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


ONE_PROCESS = """
import contextlib, glob, io, json, sys
from anyorder.cli import main

def said(*words):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main([*words]) == 0
    return out.getvalue()

small = json.loads(sys.argv[3])
found = {"list": said("list", "diameters")}
found["show"] = said("show", "diameters/normal-points/ours", "--set", "model=PointMLP(3, 8)")
said("run", "diameters/normal-points/ours", *small, "--quiet")
[folder] = glob.glob("runs/diameters/normal-points/ours/quick/*")
found["predict"] = said("predict", folder, "--input", "points.csv")
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def said(home):
    """What the commands print, in one process: most of the time goes into starting one."""
    (home / "points.csv").write_text("set,x,y\na,0,0\na,3,4\nb,1,1\nb,1,2\nb,0,1\n")
    return json.loads(python(home, ONE_PROCESS, json.dumps(SMALL)).splitlines()[-1])


@pytest.fixture(scope="module")
def trained(home, said):
    [folder] = (home / "runs").glob("diameters/normal-points/ours/quick/*")
    return folder


def test_its_recipes_are_listed_and_configured(said):
    assert "diameters/normal-points/mlp-pi" in said["list"]
    assert json.loads(said["show"])["model"] == {"type": "PointMLP", "layers": 3, "channels": 8}


def test_its_models_predict(home, said):
    assert "diameters of 2 sets" in said["predict"]
    assert [line.split(",")[0] for line in (home / "diameters.csv").read_text().splitlines()] == ["set", "a", "b"]


def test_its_saved_models_load_in_a_process_that_has_not_imported_it(home, trained):
    code = f"""
import sys, anyorder
assert "diameters" not in sys.modules
model = anyorder.load({str(trained)!r})
print(type(model).__name__, model.training, "diameters.task" in sys.modules)
"""
    assert python(home, code).split() == ["Encoder", "False", "True"]


def test_a_type_that_is_not_registered_is_refused(trained, tmp_path):
    config = json.loads((trained / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config))
    code = f"import anyorder\ntry:\n    anyorder.load({str(tmp_path)!r})\nexcept ValueError as error:\n    print(error)"
    ended = run_script(code, [])
    assert "unknown configuration type 'Diameters'" in ended.stdout or "'PointEncoder'" in ended.stdout
