"""Estimators on molecules: scikit-learn's manner, with lists of SMILES."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("rdkit")
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.utils import estimator_checks

from anyorder.estimators import MoleculeClassifier, MoleculeRegressor

SMALL = {"model": "fingerprint", "epochs": 2, "channels": 8, "layers": 1, "valid": 0.25}
SMILES = [f"{'C' * (1 + n % 9)}{'O' if n % 2 else 'N'}" for n in range(30)]
KINDS = ["alcohol" if n % 2 else "amine" for n in range(30)]


def test_classes_of_molecules(tmp_path):
    model = MoleculeClassifier(**SMALL).fit(SMILES, KINDS)
    assert model.classes_.tolist() == ["alcohol", "amine"]
    assert model.score(SMILES, KINDS) > 0.9  # the forest sees it at once
    chances = model.predict_proba(SMILES[:4])
    np.testing.assert_allclose(chances.sum(1), 1, atol=1e-6)
    model.save(tmp_path / "model")
    again = MoleculeClassifier.load(tmp_path / "model")
    assert again.get_params() == model.get_params()
    np.testing.assert_allclose(again.predict_proba(SMILES[:4]), chances, rtol=1e-6)


def test_numbers_of_molecules_one_and_several():
    sizes = np.array([[len(text), n % 2] for n, text in enumerate(SMILES)], float)
    assert MoleculeRegressor(**SMALL).fit(SMILES, sizes[:, 0]).score(SMILES, sizes[:, 0]) > 0.5
    assert MoleculeRegressor(**{**SMALL, "alone": True}).fit(SMILES, sizes).predict(SMILES[:3]).shape == (3, 2)


def test_cross_validation_takes_lists():
    found = cross_val_score(MoleculeClassifier(**SMALL), SMILES, KINDS, cv=2)
    assert found.shape == (2,) and (found > 0.5).all()


@pytest.mark.parametrize(
    ("smiles", "y", "problem"),
    [
        (SMILES, KINDS[:-1], "same length"),
        (SMILES, ["x"] * 30, "nothing to learn"),
        (["CC(", *SMILES[1:]], KINDS, "cannot be parsed"),
        ([3, *SMILES[1:]], KINDS, "expected SMILES as text, got int"),
    ],
)
def test_what_cannot_be_fitted(smiles, y, problem):
    with pytest.raises((ValueError, TypeError), match=problem):
        MoleculeClassifier(**SMALL).fit(smiles, y)


@pytest.mark.parametrize("kind", [MoleculeClassifier, MoleculeRegressor])
def test_scikit_learns_checks_that_apply(kind):
    with pytest.raises(NotFittedError):
        kind().predict(SMILES)
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
        check(kind.__name__, kind())
