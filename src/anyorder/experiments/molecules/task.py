"""Properties of molecules (Table 2): numbers or classes from SMILES, of public sets, OGB's folders and any table."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import Dataset

from anyorder.arrays import digest
from anyorder.datasets import registry
from anyorder.experiments.molecules.batch import SimilarSizeBatches
from anyorder.experiments.molecules.data import (
    ESOL,
    FREESOLV,
    LIPOPHILICITY,
    PCQM4MV2_2K,
    QM9_GAP,
    MoleculeTable,
    SplitMolecules,
    Target,
    open_named,
    open_pcqm4m,
    open_table,
)
from anyorder.experiments.molecules.goals import MoleculeShapes, classification_metrics, regression_metrics
from anyorder.experiments.molecules.labels import LabelTable, find_labels
from anyorder.experiments.molecules.models import MoleculeModel
from anyorder.experiments.molecules.parts import MoleculePart, build_options, cache_dir, limited
from anyorder.training.config import configurable
from anyorder.training.parts import fold_parts
from anyorder.training.run import (
    Answers,
    ChoosesThenTrainsOnAll,
    ExplainRequest,
    ModelConfig,
    PredictRequest,
    Run,
    Selection,
    Splits,
    Task,
)

_TABLES = {table.name: table for table in (QM9_GAP, PCQM4MV2_2K, ESOL, FREESOLV, LIPOPHILICITY)}
_TARGETS = {
    "qm9": "gap_eV",
    "pcqm4mv2_2k": "gap_eV",
    "esol": "log_solubility",
    "freesolv": "hydration_kcal_per_mol",
    "lipophilicity": "logD",
}


@dataclass(frozen=True)
class MoleculeTask(Task):
    """Predict targets of molecules; the loss is the mean over the targets that are there."""

    shapes_type = MoleculeShapes
    predict_options: ClassVar[tuple[str, ...]] = ("smiles",)
    explain_options: ClassVar[tuple[str, ...]] = ("smiles", "atom")
    kept_files: ClassVar[tuple[str, ...]] = ("forest.npz", "beside.json")

    @abstractmethod
    def open(self, data_dir: Path | None, *, seed: int = 0, progress: bool = True) -> SplitMolecules:
        """The molecules and their parts; makes the store of graphs at first use. The seed draws the parts of own tables."""

    @property
    @abstractmethod
    def target_names(self) -> tuple[str, ...]:
        """What is predicted."""

    @property
    def selection(self) -> Selection | None:
        return Selection("MAE", "min")

    def load(self, *, seed: int, data_dir: Path | None) -> Splits:
        opened = self.open(data_dir, seed=seed)
        parts = {name: MoleculePart(opened.store, members) for name, members in opened.split.items()}
        for name in ("train", "valid", "test"):
            if len(parts[name]) == 0:
                raise ValueError(
                    f"the part {name!r} of {len(opened.store)} molecules is empty: more molecules or other shares are needed"
                )
        source = json.dumps(opened.store.manifest.job["source"], sort_keys=True).encode()
        known_by = digest(source, *(opened.split[name] for name in ("train", "valid", "test")))
        return Splits(parts["train"], parts["valid"], parts["test"], self.shapes(opened), digest=known_by)

    def shapes(self, opened: SplitMolecules) -> MoleculeShapes:
        """What a model must know: the targets with mean and deviation over the training part."""
        targets = opened.store.targets()[opened.split["train"]]
        for name, column in zip(self.target_names, targets.T, strict=True):
            if np.isnan(column).all():
                raise ValueError(f"the target {name!r} has no value in the training part")
            if np.nanmin(column) == np.nanmax(column):
                value = np.nanmin(column)
                raise ValueError(
                    f"the target {name!r} is {value:g} everywhere in the training part: there is nothing to learn"
                )
        std = np.nanstd(targets, axis=0)
        mean, std = np.nanmean(targets, axis=0), np.where(std > 0, std, 1.0)
        return MoleculeShapes("regression", self.target_names, tuple(mean.tolist()), tuple(std.tolist()))

    def collate(self, model: ModelConfig) -> Callable[[Sequence[Any]], Any]:
        if not isinstance(model, MoleculeModel):
            raise TypeError(f"molecules need a MoleculeModel, got {type(model).__name__}")
        return model.inputs

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        loss: Tensor = model.goal.loss(model(batch), batch.targets)  # type: ignore[union-attr,operator]
        return loss

    def num_items(self, batch: Any) -> int:
        return int(batch.observed.sum())

    def evaluate(self, model: nn.Module, batch: Any) -> dict[str, Tensor]:
        collected: dict[str, Tensor] = model.goal.evaluate(model(batch), batch.targets)  # type: ignore[union-attr,operator]
        return collected

    def metrics(self, collected: dict[str, Tensor]) -> dict[str, float]:
        return {"MAE": regression_metrics(collected, self.target_names)["MAE"]}

    def predict(self, model: nn.Module, shapes: MoleculeShapes, request: PredictRequest) -> str:
        from anyorder.experiments.molecules.predictions import predict_table

        return predict_table(model, request, smiles=getattr(self, "smiles", "smiles"))

    def explain(self, run: Run, model: nn.Module, shapes: MoleculeShapes, request: ExplainRequest) -> str:
        from anyorder.experiments.molecules.attention import draw, explain

        if "smiles" not in request.options:
            raise ValueError("name the molecule with --smiles")
        assert isinstance(run.model, MoleculeModel)
        atom = int(request.options["atom"]) if "atom" in request.options else None
        found = explain(model, run.model.inputs, request.options["smiles"], layer=request.layer, cls=request.cls, atom=atom)
        said = [f"attention received, {found.title} (1.0: as much as if all were equal)", *found.lines()]
        return "\n".join([*said, f"drawn in {draw(found, request.output)}"])

    def batches(self, data: Dataset[Any], *, batch_size: int, seed: int, shuffle: bool, rank: int, world: int) -> Any:
        """Random batches for training, each sorted by size and dealt to the processes, so that all have as much to do."""
        assert isinstance(data, MoleculePart)
        return SimilarSizeBatches(
            data.sizes,
            batch_size=batch_size,
            seed=seed,
            shuffle=shuffle,
            pool_batches=1,
            rank=rank,
            num_processes=world,
        )


@configurable
@dataclass(frozen=True)
class NamedMolecules(MoleculeTask):
    """A public table with its fixed split; ``*_molecules`` keeps so many molecules of a part, always the same."""

    name: Literal["qm9", "pcqm4mv2_2k", "esol", "freesolv", "lipophilicity"] = "qm9"
    train_molecules: int | None = None
    valid_molecules: int | None = None
    test_molecules: int | None = None

    @property
    def target_names(self) -> tuple[str, ...]:
        return (_TARGETS[self.name],)

    def open(self, data_dir: Path | None, *, seed: int = 0, progress: bool = True) -> SplitMolecules:
        table, root = _TABLES[self.name], registry.data_dir(data_dir)
        dataset, _, file = table.file.partition("/")
        registry.locate(dataset, part=file, data_dir=root)
        opened = open_named(table, root, cache_dir(root), build_options(root / table.file), progress=progress)
        limits = {"train": self.train_molecules, "valid": self.valid_molecules, "test": self.test_molecules}
        return limited(opened, limits, self.name)


@configurable
@dataclass(frozen=True)
class OfficialMolecules(MoleculeTask):
    """PCQM4M-LSC or PCQM4Mv2 in OGB's layout, in the data folder or at a path; the last state is scored on validation.

    The gaps of the official test molecules are not public: the official validation part is what the paper reports, so
    it chooses nothing.
    """

    folder: str = "pcqm4m_kddcup2021"
    train_molecules: int | None = None
    valid_molecules: int | None = None

    @property
    def target_names(self) -> tuple[str, ...]:
        return ("gap_eV",)

    @property
    def selection(self) -> Selection | None:
        return None

    def open(self, data_dir: Path | None, *, seed: int = 0, progress: bool = True) -> SplitMolecules:
        root = registry.data_dir(data_dir)
        official = self.folder in registry.DATASETS
        folder = registry.locate(self.folder, data_dir=root) if official else root / self.folder
        opened = open_pcqm4m(folder, cache_dir(root), build_options(folder / "raw" / "data.csv.gz"), progress=progress)
        scored = SplitMolecules(opened.store, {"train": opened.split["train"], "valid": opened.split["valid"]})
        kept = limited(scored, {"train": self.train_molecules, "valid": self.valid_molecules}, "pcqm4m")
        return SplitMolecules(kept.store, {**kept.split, "test": kept.split["valid"]})


@configurable
@dataclass(frozen=True)
class OwnMolecules(ChoosesThenTrainsOnAll, MoleculeTask):
    """Any table of SMILES: numbers to predict, or classes. Molecules of which no target is there are left out."""

    data: str = ""
    smiles: str = "smiles"
    targets: tuple[str, ...] = ()
    goal: Literal["regression", "classification"] = "regression"
    keep_missing: bool = False
    max_atoms: int | None = None
    valid: float = 0.1
    test: float = 0.1
    """0: no test part; the validation part is reported, and then all rows train."""
    everything: bool = False
    alone: bool = False
    """The network answers alone; otherwise a forest helps as far as validation prefers that."""
    folds: int = 0
    """In place of shares: so many parts, of which number ``fold`` tests and the next one chooses the epoch."""
    fold: int = 0

    def __post_init__(self) -> None:
        if not self.targets:
            raise ValueError("name at least one target column")
        if self.valid <= 0 or self.test < 0 or self.valid + self.test >= 1:
            raise ValueError(f"valid and test must be shares of the rows, together below 1: got {self.valid}, {self.test}")

    @property
    def target_names(self) -> tuple[str, ...]:
        return self.targets

    @property
    def without_test(self) -> bool:
        return self.test == 0 and not self.everything

    @property
    def score_name(self) -> str:
        return "accuracy" if self.goal == "classification" else "MAE" if len(self.targets) == 1 else "scaled MAE"

    @property
    def selection(self) -> Selection | None:
        if self.everything:
            return None
        if self.goal == "classification":
            return Selection("loss", "min")
        return Selection("MAE" if len(self.targets) == 1 else "scaled MAE", "min")

    def table(self) -> MoleculeTable:
        """The table as it is read."""
        path = Path(self.data)
        if not path.is_file():
            raise FileNotFoundError(f"there is no table {path}")
        targets = tuple(Target(column) for column in self.targets)
        plain = MoleculeTable(path, self.smiles, targets, keep_missing=self.keep_missing)
        return find_labels(plain) if self.goal == "classification" else plain

    def open(self, data_dir: Path | None, *, seed: int = 0, progress: bool = True) -> SplitMolecules:
        table = self.table()
        described = json.dumps([table.describe(), self.max_atoms], sort_keys=True)
        store = cache_dir(registry.data_dir(data_dir)) / "own" / hashlib.sha256(described.encode()).hexdigest()[:16]
        options = build_options(table.path, self.max_atoms)
        shares = {"valid": self.valid, "test": self.test}
        opened = open_table(table, store, options, **shares, name=f"own-{seed}" if seed else "own", progress=progress)
        known = (~np.isnan(opened.store.targets())).sum(axis=1) > 0
        split = self._fold(opened, seed) if self.folds else opened.split
        parts = {part: members[known[members]] for part, members in split.items()}
        if self.test == 0:
            parts["test"] = parts["valid"]
        if self.everything:
            parts["train"] = np.sort(np.concatenate([parts["train"], parts["valid"]]))
        return SplitMolecules(opened.store, parts)

    def _fold(self, opened: SplitMolecules, seed: int) -> dict[str, NDArray[np.int64]]:
        rows = np.arange(opened.store.manifest.num_rows)
        found = fold_parts(rows, None, folds=self.folds, fold=self.fold, seed=seed)
        return {part: opened.store.locate(getattr(found, part)) for part in ("train", "valid", "test")}

    def describe(self, splits: Splits) -> list[str]:
        sizes = [len(part) for part in (splits.train, splits.valid or (), splits.test)]  # type: ignore[arg-type]
        what = f"{self.goal} of {', '.join(map(repr, self.targets))}"
        return [f"{what}: {sizes[0]:,} molecules to train on, {sizes[1]:,} to validate, {sizes[2]:,} to test"]

    def conclude(self, run: Run, model: nn.Module, splits: Splits, folder: Path) -> list[Answers]:
        """The answer (network, forest or both, as validation says), what it is made of, and the mean."""
        from anyorder.experiments.molecules.beside import stand_beside

        return stand_beside(run, model, splits, folder)

    def shapes(self, opened: SplitMolecules) -> MoleculeShapes:
        if self.goal == "regression":
            return super().shapes(opened)
        table = self.table()
        assert isinstance(table, LabelTable)
        return MoleculeShapes("classification", self.targets, labels=tuple(tuple(known) for known in table.labels))

    def metrics(self, collected: dict[str, Tensor]) -> dict[str, float]:
        kind = regression_metrics if self.goal == "regression" else classification_metrics
        return kind(collected, self.targets)
