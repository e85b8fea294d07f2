"""Classes and numbers of molecules, from lists of SMILES."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from torch import Tensor

from anyorder.estimators.base import FolderClassifier, FolderEstimator, same_length
from anyorder.experiments.molecules.beside import Beside
from anyorder.experiments.molecules.fitting import MoleculeFit, own_run
from anyorder.experiments.molecules.goals import Regression, chances
from anyorder.experiments.molecules.models import MoleculeModel
from anyorder.experiments.molecules.predictions import answer
from anyorder.experiments.molecules.store import Molecule
from anyorder.experiments.molecules.task import OwnMolecules
from anyorder.training.answers import finite_answers
from anyorder.training.checkpoints import load_model

DATA, TARGET, _CHUNK = "data.csv", "y", 256


class MoleculeEstimator(FolderEstimator):
    """What estimators on molecules share.

    Args:
        model: ours, transformer, mlp_pi, gin, gcn, gin-vn, gcn-vn or fingerprint.
        channels, layers: None: after the number of molecules.
        dropout, learning_rate, batch_size: of the training.
        epochs: at most; None: as many as take a few minutes.
        alone: the network answers alone; otherwise a forest helps as far as validation prefers that.
        valid: share of the molecules that chooses the epoch and how much the forest counts.
        seed: of the validation part, initialisation and training.
        progress: show a progress bar.
    """

    def __init__(
        self,
        *,
        model: str = "ours",
        channels: int | None = None,
        layers: int | None = None,
        dropout: float = 0.1,
        learning_rate: float = 1e-3,
        batch_size: int = 32,
        epochs: int | None = None,
        alone: bool = False,
        valid: float = 0.1,
        seed: int = 0,
        progress: bool = False,
    ) -> None:
        self.model = model
        self.channels = channels
        self.layers = layers
        self.dropout = dropout
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.epochs = epochs
        self.alone = alone
        self.valid = valid
        self.seed = seed
        self.progress = progress

    def _train(self, smiles: Sequence[str], columns: NDArray[Any], goal: Literal["regression", "classification"]) -> None:
        for row, text in enumerate(smiles):
            if not isinstance(text, str):
                raise TypeError(f"expected SMILES as text, got {type(text).__name__} in row {row}")
            Molecule.from_smiles(text)
        folder, names = self._new_folder(), tuple(f"{TARGET} {n}" for n in range(columns.shape[1]))
        with (folder / DATA).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(
                [["smiles", *names], *([text, *row] for text, row in zip(smiles, columns, strict=True))]
            )
        task = OwnMolecules(str(folder / DATA), "smiles", names, goal, True, None, self.valid, 0.0, alone=self.alone)
        task.open(folder, seed=self.seed, progress=self.progress)  # what is built here is found by the training
        sizes = ("model", "channels", "layers", "dropout", "learning_rate", "batch_size")
        fit = MoleculeFit(**{name: getattr(self, name) for name in sizes}, epochs=self.epochs or 100)
        self._carry_out(own_run(task, fit, rows=len(columns), seed=self.seed), folder, fixed=self.epochs is not None)

    def _out(self, smiles: Sequence[str]) -> tuple[Any, Tensor]:
        """The goal, and what the model answers for it."""
        folder: Path = self._trained()
        run, model = load_model(folder)
        assert isinstance(run.model, MoleculeModel)
        beside, texts = Beside.load(folder), list(smiles)
        parts = [texts[start : start + _CHUNK] for start in range(0, len(texts), _CHUNK)]
        with torch.inference_mode():
            found = [answer(model, run.model.inputs, beside, list(map(Molecule.from_smiles, part))) for part in parts]
        if not found:
            raise ValueError("expected at least one molecule, got an empty list")
        return model.goal, finite_answers(torch.cat(found), "molecules")


class MoleculeClassifier(FolderClassifier, MoleculeEstimator):
    """Classes of molecules, given as SMILES.

    >>> chains, rings = (["C" * n + "O" for n in range(1, 9)], ["c1ccccc1" + "C" * n for n in range(8)])
    >>> model = MoleculeClassifier(channels=8, layers=1, epochs=2).fit(chains + rings, [0] * 8 + [1] * 8)
    >>> model.predict_proba(["CCO", "c1ccccc1"]).shape
    (2, 2)
    """

    def fit(self, X: Sequence[str], y: Sequence[Any]) -> MoleculeClassifier:
        """Fit to SMILES and a class for each: numbers or texts."""
        places = self._places(y)
        self._train(same_length(X, y, "molecules"), places[:, None], "classification")
        return self

    def predict_proba(self, X: Sequence[str]) -> NDArray[np.float64]:
        """(molecule, class), classes in the order of ``classes_``."""
        found: NDArray[np.float64] = chances(self._out(X)[1]).double().numpy()
        return found


class MoleculeRegressor(RegressorMixin, MoleculeEstimator):
    """Numbers of molecules, given as SMILES.

    >>> alcohols = ["C" * n + "O" for n in range(1, 17)]
    >>> model = MoleculeRegressor(channels=8, layers=1, epochs=2).fit(alcohols, [len(each) for each in alcohols])
    >>> model.predict(["CCO"]).shape
    (1,)
    """

    def fit(self, X: Sequence[str], y: Any) -> MoleculeRegressor:
        """Fit to SMILES and a number for each, or several in rows (molecule, target), NaN where one is not known."""
        values = np.asarray(y, np.float64).reshape(len(same_length(X, y, "molecules")), -1)
        self._train(X, values, "regression")
        self.fitted_["several"] = np.asarray(y).ndim > 1
        return self

    def predict(self, X: Sequence[str]) -> NDArray[np.float64]:
        """(molecule,), or (molecule, target) where ``y`` had rows."""
        goal, out = self._out(X)
        assert isinstance(goal, Regression)
        rows: NDArray[np.float64] = (out * goal.std + goal.mean).double().numpy()
        return rows if self.fitted_["several"] else rows[:, 0]
