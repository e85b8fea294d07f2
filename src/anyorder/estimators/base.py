"""What all estimators share: settings, a folder with the trained model, saving and loading."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError

from anyorder.errors import InputError, reading
from anyorder.files import read_sealed_json, write_sealed_json
from anyorder.training.fit import carry_out
from anyorder.training.jobs import Job
from anyorder.training.machine import Machine
from anyorder.training.outcome import conclude
from anyorder.training.run import Run
from anyorder.training.sizing import fit_epochs, keeping_threads

ESTIMATOR = "estimator.json"
Self = TypeVar("Self", bound="FolderEstimator")


class FolderEstimator(BaseEstimator):
    """An estimator whose trained model lies in a folder, a temporary one until it is saved."""

    def _new_folder(self) -> Path:
        """A folder for the model of the next fit, removed with the estimator."""
        folder = tempfile.mkdtemp(prefix="anyorder-")
        self._folder = folder
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)

    def _carry_out(self, run: Run, folder: Path, *, fixed: bool) -> None:
        """Train into a folder, for as many epochs as fit a few minutes unless their number is fixed."""
        machine = Machine(progress=bool(getattr(self, "progress", False)), data_dir=folder)
        kind = type(self).__name__
        with keeping_threads():
            if not fixed:
                run, _ = fit_epochs(run, run.task.load(seed=run.seed, data_dir=folder))
            record = carry_out(Job(f"own/{kind}", "own", kind, "ours", run), folder, machine)
            record = conclude(run, folder, record, data_dir=folder).record
        shutil.rmtree(folder / "cache", ignore_errors=True)
        self.fitted_: dict[str, Any] = {"epochs": len(record.history), "valid": record.metrics.get("", {})}

    def _trained(self) -> Path:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")
        return Path(self._folder)

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "_folder", None) is not None and hasattr(self, "fitted_")

    def save(self, folder: str | Path) -> None:
        """Write the model and the settings: ``load`` and ``anyorder predict`` read them; nothing in it runs code."""
        source, target = self._trained(), Path(folder)
        if target.exists() and any(target.iterdir()):
            raise FileExistsError(f"{target} is not empty: save into a new folder")
        shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("logs", "last.ckpt", "cache"))
        held = {"kind": type(self).__name__, "settings": self.get_params(deep=False), "fitted": self._learned()}
        write_sealed_json(target / ESTIMATOR, held)

    @classmethod
    def load(cls: type[Self], folder: str | Path) -> Self:
        """An estimator as it was saved."""
        path = Path(folder) / ESTIMATOR
        held = read_sealed_json(path, ("kind", "settings", "fitted"))
        if held.get("kind") != cls.__name__:
            raise InputError(f"{path} does not describe a {cls.__name__}, but {held.get('kind', 'something else')!r:.60}")
        with reading(path, "the settings of an estimator"):
            settings = {name: tuple(value) if isinstance(value, list) else value for name, value in held["settings"].items()}
            made = cls(**settings)
        shutil.copytree(folder, made._new_folder(), dirs_exist_ok=True)
        with reading(path, "what an estimator has learned"):
            made._restore(held["fitted"])
        return made

    def _learned(self) -> dict[str, Any]:
        """What a fit has found, for a file."""
        return self.fitted_

    def _restore(self, fitted: dict[str, Any]) -> None:
        """Take up what a fit had found."""
        self.fitted_ = fitted


class FolderClassifier(ClassifierMixin, FolderEstimator):
    """An estimator whose answers are classes: those that ``y`` names in a fit, by their places inside."""

    def _places(self, y: Sequence[Any]) -> NDArray[np.int64]:
        """The place of each row's class among ``classes_``, which are found here."""
        self.classes_, places = np.unique(np.asarray(y), return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has {len(self.classes_)} class: expected at least two, there is nothing to learn")
        return places.reshape(-1).astype(np.int64)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """(row, class), classes in the order of ``classes_``."""
        raise NotImplementedError

    def predict(self, X: Any) -> NDArray[Any]:
        """The most likely class of each row, as ``y`` had them in ``fit``."""
        best = self.predict_proba(X).argmax(1)  # first: without a fit there are no classes, and it says so
        found: NDArray[Any] = self.classes_[best]
        return found

    def _learned(self) -> dict[str, Any]:
        return {**super()._learned(), "classes": self.classes_.tolist()}

    def _restore(self, fitted: dict[str, Any]) -> None:
        super()._restore(fitted)
        self.classes_ = np.array(fitted["classes"])


def same_length(items: Sequence[Any], y: Any, what: str) -> Sequence[Any]:
    """The items, which must be as many as their targets."""
    if len(items) != len(y):
        raise ValueError(f"X and y must have the same length, got {len(items)} {what} and {len(y)} targets")
    return items
