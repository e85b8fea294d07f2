"""Estimators on graphs: scikit-learn's manner, with lists of graphs."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")
nx = pytest.importorskip("networkx")
from sklearn.base import clone  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.utils import estimator_checks  # noqa: E402

from anyorder.estimators import GraphClassifier, GraphRegressor, LinkPredictor, NodeClassifier  # noqa: E402

SMALL = {"epochs": 4, "channels": 8, "layers": 1, "valid": 0.25}
ESTIMATORS = [GraphClassifier, GraphRegressor, NodeClassifier, LinkPredictor]


def rings_and_stars(count: int = 24) -> tuple[list[nx.Graph], list[str]]:
    graphs = [nx.cycle_graph(5 + n % 3) if n % 2 else nx.star_graph(4 + n % 3) for n in range(count)]
    return graphs, ["ring" if n % 2 else "star" for n in range(count)]


def test_classes_of_graphs(tmp_path):
    graphs, labels = rings_and_stars()
    model = GraphClassifier(**{**SMALL, "epochs": 30, "learning_rate": 1e-2}).fit(graphs, labels)
    assert model.classes_.tolist() == ["ring", "star"]
    assert model.score(graphs, labels) > 0.9
    chances = model.predict_proba(graphs[:3])
    np.testing.assert_allclose(chances.sum(1), 1, atol=1e-6)
    model.save(tmp_path / "model")
    again = GraphClassifier.load(tmp_path / "model")
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.predict_proba(graphs[:3]), chances)
    with pytest.raises(ValueError, match="does not describe a GraphRegressor, but 'GraphClassifier'"):
        GraphRegressor.load(tmp_path / "model")


def test_numbers_of_graphs_one_and_several():
    graphs, _ = rings_and_stars()
    sizes = np.array([[len(graph), graph.number_of_edges()] for graph in graphs], float)
    assert GraphRegressor(**SMALL).fit(graphs, sizes[:, 0]).predict(graphs).shape == (24,)
    assert GraphRegressor(**SMALL).fit(graphs, sizes).predict(graphs).shape == (24, 2)


def test_classes_of_nodes_where_some_are_not_known():
    graph = nx.barbell_graph(10, 0)
    labels = [node // 10 if node % 3 else None for node in graph]
    model = NodeClassifier(**{**SMALL, "epochs": 10}).fit(graph, labels)
    assert model.predict(graph).shape == (20,) and set(model.predict(graph)) <= {0, 1}
    assert 0 <= model.score(graph, labels) <= 1


def test_links_by_the_names_of_nodes():
    graph = nx.relabel_nodes(nx.barbell_graph(8, 0), {n: f"n{n}" for n in range(16)})
    model = LinkPredictor(**{**SMALL, "epochs": 10}).fit(graph)
    pairs = [("n0", "n1"), ("n0", "n15")]
    assert model.predict_proba(pairs).shape == (2, 2) and 0 <= model.score(pairs, [1, 0]) <= 1
    with pytest.raises(ValueError, match="expected pairs of nodes of the graph"):
        model.predict([("n0", "nowhere")])


def test_pyg_data_is_taken():
    data, torch = pytest.importorskip("torch_geometric.data"), pytest.importorskip("torch")
    ring = torch.tensor([[0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2]])
    items = [data.Data(x=torch.full((3, 1), float(n % 2)), edge_index=ring) for n in range(20)]
    model = GraphClassifier(**SMALL).fit(items, [n % 2 for n in range(20)])
    assert model.predict(items[:2]).shape == (2,)


def test_grid_search_and_cross_validation_take_lists_of_graphs():
    graphs, labels = rings_and_stars(18)
    assert cross_val_score(GraphClassifier(**{**SMALL, "epochs": 1}), graphs, labels, cv=2).shape == (2,)
    search = GridSearchCV(GraphClassifier(**{**SMALL, "epochs": 1}), {"channels": [4, 8]}, cv=2).fit(graphs, labels)
    assert search.best_params_["channels"] in (4, 8)


@pytest.mark.parametrize("kind", ESTIMATORS)
class TestManner:
    def test_settings_are_kept_and_cloned(self, kind):
        model = kind(channels=16).set_params(epochs=3)
        assert clone(model).get_params() == model.get_params() and model.get_params()["epochs"] == 3

    def test_refuses_to_answer_before_it_is_fitted(self, kind, tmp_path):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            kind().save(tmp_path / "model")

    @pytest.mark.parametrize(
        "check",
        [
            "check_no_attributes_set_in_init",
            "check_parameters_default_constructible",
            "check_get_params_invariance",
            "check_set_params",
            "check_estimator_cloneable",
            "check_estimator_repr",
            "check_valid_tag_types",
            "check_mixin_order",
        ],
    )
    def test_the_checks_of_scikit_learn_that_apply(self, kind, check):
        getattr(estimator_checks, check)(kind.__name__, kind())


def test_says_what_is_wrong():
    graphs, labels = rings_and_stars(6)
    with pytest.raises(ValueError, match="same length, got 6 graphs and 5 targets"):
        GraphClassifier(**SMALL).fit(graphs, labels[:5])
    with pytest.raises(ValueError, match="1 class"):
        GraphClassifier(**SMALL).fit(graphs, ["a"] * 6)
    with pytest.raises(TypeError, match="expected NetworkX graphs or PyG Data, got int"):
        GraphClassifier(**SMALL).fit([1, 2], [0, 1])
