"""Estimators on sets and hypergraphs: scikit-learn's manner, with lists."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils import estimator_checks

import anyorder.estimators as estimators
from anyorder.estimators import HyperedgePredictor, HypergraphNodeClassifier, SetToGraph
from anyorder.training.checkpoints import load_run

SMALL = {"channels": 8, "layers": 1, "epochs": 4, "valid": 0.25}


def pairs_of_points(count: int = 16) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Sets of two pairs of near points, with their edges."""
    random = np.random.default_rng(0)
    sets = [np.repeat(random.normal(size=(2, 2)), 2, 0) * 5 + random.normal(size=(4, 2)) / 20 for _ in range(count)]
    return sets, [np.array([[0, 1], [2, 3]])] * count


def test_edges_of_sets(tmp_path):
    sets, edges = pairs_of_points()
    model = SetToGraph(**{**SMALL, "epochs": 8, "learning_rate": 1e-2}).fit(sets, edges)
    assert 0 <= model.score(sets, edges) <= 1
    chances = model.predict_proba(sets[:3])
    assert [each.shape for each in chances] == [(4, 4)] * 3
    model.save(tmp_path / "model")
    np.testing.assert_allclose(SetToGraph.load(tmp_path / "model").predict_proba(sets[:3]), chances, rtol=1e-6)


def test_clusters_of_sets_of_several_sizes():
    sets, _ = pairs_of_points()
    sets[0] = sets[0][:3]
    clusters = [[0, 0, 1, 1][: len(each)] for each in sets]
    found = SetToGraph(labels="partition", **SMALL).fit(sets, clusters).predict(sets)
    assert [len(each) for each in found] == [len(each) for each in sets]


def test_settings_of_sets_are_searched():
    sets, edges = pairs_of_points()
    found = GridSearchCV(SetToGraph(**SMALL), {"layers": [1, 2]}, cv=2).fit(sets, edges)
    assert found.best_params_["layers"] in (1, 2)


def two_teams() -> tuple[list[list[str]], dict[str, str]]:
    edges = [[f"{team}{n % 8}", f"{team}{(n + 1) % 8}", f"{team}{(n + 3) % 8}"] for team in "ab" for n in range(24)]
    return edges, {f"{team}{n}": team for team in "ab" for n in range(6)}


def test_classes_of_nodes_by_their_names(tmp_path):
    edges, teams = two_teams()
    model = HypergraphNodeClassifier(model="mlp", epochs=3).fit(edges, teams)
    assert model.classes_.tolist() == ["a", "b"] and model.predict(["a7", "b7"]).shape == (2,)
    assert 0 <= model.score(list(teams), list(teams.values())) <= 1
    model.save(tmp_path / "model")
    again = HypergraphNodeClassifier.load(tmp_path / "model")
    np.testing.assert_allclose(again.predict_proba(["a7"]), model.predict_proba(["a7"]), rtol=1e-5)
    with pytest.raises(ValueError, match="'nobody' is no node"):
        model.predict(["nobody"])


def test_classes_of_nodes_with_features():
    edges, teams = two_teams()
    features = {f"{team}{n}": [float(team == "a"), n] for team in "ab" for n in range(8)}
    assert HypergraphNodeClassifier(model="mlp", epochs=30).fit(edges, teams, features).score(["a7", "b7"], ["a", "b"]) == 1


def test_hyperedges_of_any_size():
    edges, _ = two_teams()
    model = HyperedgePredictor(epochs=3).fit([*edges, ["a0", "b0"]])
    asked = [["a0", "a1", "a3"], ["a0", "b4"]]
    assert model.predict_proba(asked).shape == (2, 2) and set(model.predict(asked)) <= {0, 1}
    assert 0 <= model.score(asked, [1, 0]) <= 1


def test_tuples_whose_places_have_kinds(tmp_path):
    random = np.random.default_rng(0)
    rows = [(f"u{n % 9}", f"i{n % 3 + 3 * random.integers(3)}", f"t{n % 3}") for n in range(60)]  # all of one group
    model = HyperedgePredictor(kinds=("user", "item", "tag"), epochs=15).fit(rows)
    asked = [("u0", "i0", "t0"), ("u0", "i1", "t2"), ("u1", "i4", "t1"), ("u1", "i3", "t0")]
    assert model.predict_proba(asked).shape == (4, 2)
    assert model.score(asked, [1, 0, 1, 0]) > 0.5
    model.save(tmp_path / "model")
    again = HyperedgePredictor.load(tmp_path / "model")
    assert again.kinds == ("user", "item", "tag")
    np.testing.assert_allclose(again.predict_proba(asked), model.predict_proba(asked), rtol=1e-5)
    np.testing.assert_allclose(model.predict_proba(np.array(asked)), model.predict_proba(asked))
    with pytest.raises(ValueError, match=r"tuple 0 must have a name for each of \('user', 'item', 'tag'\)"):
        model.predict([("u0", "i0")])


def test_all_that_is_known_is_learned_from():
    """No part of what a user gives is kept for a test that an estimator has no use for."""
    edges, teams = two_teams()
    nodes = HypergraphNodeClassifier(epochs=1).fit(edges, teams)
    run = load_run(Path(nodes._folder))[0]
    parts = run.task.load(seed=run.seed, data_dir=None)
    assert len({*parts.train.nodes.tolist(), *parts.valid.nodes.tolist()}) == len(teams)
    sets = HyperedgePredictor(epochs=1).fit(edges)
    run = load_run(Path(sets._folder))[0]
    parts = run.task.load(seed=run.seed, data_dir=None)
    assert len(parts.train[0].positives) + len(parts.valid[0].positives) == len({frozenset(edge) for edge in edges})


@pytest.mark.parametrize(
    ("kind", "given", "problem"),
    [
        (SetToGraph, ([np.zeros((2, 2)), np.zeros((2, 3))], [[], []]), "set 1 must be an array"),
        (SetToGraph, ([], []), "at least one set"),
        (HypergraphNodeClassifier, ([["a", "b"]], {"c": 1, "a": 2}), "which is no node of the hypergraph"),
        (HypergraphNodeClassifier, ([["a", "b"]], {"a": 1, "b": 1}), "nothing to learn"),
        (HyperedgePredictor, (["abc"],), "expected hyperedges as lists of nodes"),
        (HyperedgePredictor, ([["a b", "c"]],), "without spaces"),
    ],
)
def test_what_cannot_be_fitted(kind, given, problem):
    with pytest.raises(ValueError, match=problem):
        kind().fit(*given)


@pytest.mark.parametrize("name", estimators.__all__)
def test_scikit_learns_checks_that_apply_to_all(name):
    kind = getattr(estimators, name)
    with pytest.raises(NotFittedError):
        kind().predict([["a", "b"]])
    assert clone(kind(epochs=3)).epochs == 3
    for check in (
        estimator_checks.check_parameters_default_constructible,
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_get_params_invariance,
        estimator_checks.check_set_params,
        estimator_checks.check_estimator_repr,
        estimator_checks.check_valid_tag_types,
        estimator_checks.check_estimator_cloneable,
    ):
        check(name, kind())
