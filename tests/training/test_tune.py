"""The search over settings sees validation and nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from anyorder.cli import main
from anyorder.errors import InputError
from anyorder.experiments import find
from anyorder.experiments.hypergraphs import tuned as nodes
from anyorder.experiments.hypergraphs.prediction import tuned as sets
from anyorder.training.run import Selection
from anyorder.training.tune import TUNING, Trial, Tuning, best_on_validation, candidates, collect_choices, tune

SPACE = {"model.dropout": ("0.1", "0.3", "0.5"), "optimiser.weight_decay": ("0.0", "0.01")}


def record(valid: list[float], test: float) -> SimpleNamespace:
    """What of a record the search may read, and a test value that it must not."""
    history = [{"epoch": float(n), "accuracy": value} for n, value in enumerate(valid)]
    return SimpleNamespace(recipe="r", history=history, metrics={"": {"accuracy": test}})


def test_candidates_begin_with_the_recipe_and_repeat():
    first, *others = candidates(SPACE, 4)
    assert first == ()
    assert len(set(others)) == 3
    assert candidates(SPACE, 4) == [first, *others]
    assert len(candidates(SPACE, 100)) == 7
    with pytest.raises(ValueError, match="at least one trial, got 0"):
        candidates(SPACE, 0)


def test_the_choice_is_by_validation_not_by_test():
    recipe = find("hypergraphs/zoo/mlp")
    seen = []

    def execute(job):
        seen.append((job.overrides, job.run.seed))
        good = "model.dropout=0.3" in job.overrides
        return record([10.0, 90.0 if good else 80.0, 20.0], test=0.0 if good else 100.0)

    found = tune(recipe, scale="quick", space=SPACE, trials=7, seeds=(100, 101), execute=execute, say=lambda text: None)
    assert "model.dropout=0.3" in found.chosen.overrides
    assert found.chosen.valid == (90.0, 90.0)
    assert len(seen) == 14
    assert {seed for _, seed in seen} == {100, 101}


def test_the_least_value_is_best_where_the_metric_is_a_loss():
    trials = (Trial((), (1.0,)), Trial(("a=1",), (0.5,)), Trial(("a=2",), (float("nan"),)))
    assert Tuning("r", "quick", Selection("loss", "min"), (100,), {"a": ("1", "2")}, trials).chosen.overrides == ("a=1",)
    assert best_on_validation(record([3.0, 1.0, 2.0], 0.0), Selection("accuracy", "min")) == 1.0
    with pytest.raises(ValueError, match="never evaluated by 'F1'"):
        best_on_validation(record([1.0], 0.0), Selection("F1", "max"))


def test_the_record_names_every_trial(tmp_path):
    tuning = Tuning(
        "r", "quick", Selection("accuracy", "max"), (100,), {"a": ("1",)}, (Trial((), (1.0,)), Trial(("a=1",), (2.0,)))
    )
    tuning.write(tmp_path / "tuning.json")
    data = json.loads((tmp_path / "tuning.json").read_text())
    assert data["chosen"] == ["a=1"]
    assert [trial["mean"] for trial in data["trials"]] == [1.0, 2.0]
    assert "test" not in (tmp_path / "tuning.json").read_text()


def test_wrong_values_are_refused(capsys):
    assert main(["tune", "hypergraphs/zoo/mlp", "--try", "model.dropout"]) == 1
    assert "got 'model.dropout'" in capsys.readouterr().err


def test_searches_are_collected_to_the_places_of_their_recipes(tmp_path):
    tuning = Tuning("zoo/ours", "quick", Selection("accuracy", "max"), (100,), {"a": ("1",)}, (Trial((), (1.0,)),))
    tuning.write(tmp_path / "runs" / "anywhere" / "tuning.json")
    assert collect_choices(tmp_path / "runs", tmp_path / "results") == 1
    assert (tmp_path / "results" / "zoo" / "ours" / "quick" / "tuning.json").exists()
    replace(tuning, recipe="../zoo").write(tmp_path / "runs" / "tuning.json")
    with pytest.raises(InputError, match=r"names the recipe '\.\./zoo'"):
        collect_choices(tmp_path / "runs", tmp_path / "results")


@pytest.mark.parametrize(
    ("table", "tuned", "trials"), [("hypergraphs", nodes.TUNED, (3, 6)), ("hyperedge-sets", sets.TUNED, (4,))]
)
def test_recipes_take_what_the_searches_chose(table, tuned, trials):
    found = {}
    for path in (Path(__file__).parents[2] / "results" / table).rglob(TUNING):
        data = json.loads(path.read_text())
        recipe = find(data["recipe"])
        assert data["seeds"] == [100]
        assert len(data["trials"]) == trials[0 if "walmart" in data["recipe"] else -1]
        if data["chosen"]:
            found[recipe.dataset, recipe.row] = tuple(data["chosen"])
    assert found == tuned
