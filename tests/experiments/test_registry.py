"""Experiments by name: nothing is imported before it is asked for."""

import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import anyorder.experiments
from anyorder.experiments import Command, Experiment, below, find, register
from anyorder.experiments.builtin import BUILTIN
from anyorder.training import config, registry


def in_a_new_process(code: str) -> str:
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return ended.stdout.strip()


def test_one_experiment_does_not_load_another():
    code = """
import sys
from anyorder.experiments import find
find("chains/ours-s").make("quick")
print(*sorted(name.split(".")[2] for name in sys.modules if name.startswith("anyorder.experiments.")))
"""
    assert set(in_a_new_process(code).split()) == {"builtin", "chains"}


@pytest.mark.parametrize("words", ["--help", "train --help", "train molecules --help", "predict --help", "data --help"])
def test_help_needs_no_torch(words):
    code = f"""
import sys
from anyorder.cli import main
try:
    main({words.split()!r})
except SystemExit as ended:
    print(ended.code, "torch" in sys.modules, "numpy" in sys.modules)
"""
    assert in_a_new_process(code).splitlines()[-1] == "0 False False"


def test_a_saved_model_is_found_without_importing_experiments_first():
    code = """
from importlib.resources import files
from anyorder.training.checkpoints import load_model
print(type(load_model(files("anyorder") / "checkpoints" / "delaunay-1-ours")[0].task).__module__)
"""
    assert in_a_new_process(code) == "anyorder.experiments.set_to_graph.delaunay_task"


def test_every_configuration_is_registered_where_it_is():
    for module in pkgutil.walk_packages(anyorder.experiments.__path__, "anyorder.experiments."):
        importlib.import_module(module.name)
    here = "anyorder.experiments."
    defined = {name: cls.__module__ for name, cls in config._TYPES.items() if cls.__module__.startswith(here)}
    registered = {name: module for each in BUILTIN for module, names in each.types.items() for name in names}
    assert defined.items() <= registered.items() and registered.keys() <= config._TYPES.keys()


def test_tables_and_recipes_have_their_registered_names():
    for table in anyorder.experiments.table_names():
        assert anyorder.experiments.find_table(table).name == table
        assert all(recipe.name.startswith(f"{table}/") for recipe in below(table))


def test_unknown_names_are_refused_with_the_nearest():
    with pytest.raises(ValueError, match="unknown recipe 'chians/gcn'; did you mean 'chains/gcn'"):
        find("chians/gcn")
    with pytest.raises(ValueError, match="unknown recipe or table 'jet'; did you mean 'jets'"):
        below("jet")


def test_records_name_configurations_that_are_found():
    names = set()
    for path in Path(__file__).parents[2].glob("results/**/record*.json"):
        names |= {*re.findall(r'"type": "(\w+)"', path.read_text())}
    assert "Run" in names or not names
    assert not {name for name in names if config.find_type(name) is None}


class TestRegister:
    @pytest.fixture(autouse=True)
    def restored(self, monkeypatch):
        for name in ("_EXPERIMENTS", "_TABLES", "_HOMES"):
            monkeypatch.setattr(registry, name, dict(getattr(registry, name)))

    def test_twice_the_same_is_once(self):
        mine = Experiment("mine", tables={"mine": "my.recipes"})
        register(mine)
        register(mine)
        assert anyorder.experiments.table_names()[-1] == "mine"

    @pytest.mark.parametrize(
        ("experiment", "message"),
        [
            (Experiment("chains"), "two experiments are called 'chains'"),
            (Experiment("mine", tables={"jets": "my.recipes"}), "the table 'jets' of my.recipes is known already"),
            (Experiment("mine", types={"my.task": ["Chains"]}), "the configuration 'Chains' of my.task is known already"),
            (
                Experiment("mine", commands=[Command("draw orders", "", "my:f")]),
                "the command 'draw orders' of my:f is known already",
            ),
        ],
    )
    def test_names_that_are_taken_are_refused(self, experiment, message):
        before = anyorder.experiments.experiments()
        with pytest.raises(ValueError, match=message):
            register(experiment)
        assert anyorder.experiments.experiments() == before

    def test_a_module_without_its_configuration_is_an_error(self):
        register(Experiment("mine", types={"anyorder.suggest": ["Missing"]}))
        with pytest.raises(ValueError, match=r"anyorder\.suggest is registered as the module of the configuration Missing"):
            config.make("Missing", {})

    def test_a_package_that_cannot_be_loaded_is_left_out_with_a_warning(self, monkeypatch):
        class Broken:
            value = "broken:EXPERIMENT"

            def load(self):
                raise ImportError("no module broken")

        monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [Broken()])
        with pytest.warns(UserWarning, match=r"'broken:EXPERIMENT' is left out: ImportError: no module broken"):
            registry._discover.__wrapped__()
