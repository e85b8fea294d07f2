"""Jobs: runs with their place among the tables."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

from anyorder.errors import InputError, is_control, reading
from anyorder.files import read_sealed_json, write_sealed_json
from anyorder.training.checkpoints import load_run
from anyorder.training.config import override, to_data
from anyorder.training.machine import Machine
from anyorder.training.records import Record, commit, hardware, now, split_metrics, versions
from anyorder.training.run import Recipe, Run, Scale

JOB = "job.json"


@dataclass(frozen=True)
class Job:
    """A run with its place among the tables."""

    recipe: str
    table: str
    dataset: str
    row: str
    run: Run
    overrides: tuple[str, ...] = ()

    @classmethod
    def of(cls, recipe: Recipe, *, scale: Scale, seed: int, overrides: tuple[str, ...] = ()) -> Job:
        if scale not in recipe.scales:
            raise ValueError(f"{recipe.name} has the scales {', '.join(recipe.scales)}, got {scale!r}")
        run = replace(recipe.make(scale), scale=scale, seed=seed)
        for setting in overrides:
            run = override(run, setting)
        return cls(recipe.name, recipe.table, recipe.dataset, recipe.row, run, overrides)

    def folder(self, out: Path) -> Path:
        """Where the run goes: computed from what it is."""
        variant = "".join("--" + "".join(c if c.isalnum() or c in "._-" else "-" for c in s) for s in self.overrides)
        if len(variant) > 120:  # file systems allow 255 bytes
            variant = "--" + hashlib.sha256(variant.encode()).hexdigest()[:12]
        return out / self.recipe / self.run.scale / f"seed-{self.run.seed}{variant}"

    def record(
        self,
        metrics: dict[str, float],
        history: list[dict[str, float]],
        *,
        seconds: float,
        parameters: int = 0,
        processes: int = 1,
        precision: str = "64",
        unfinished: str = "",
    ) -> Record:
        """What came of it, with all that tells who made it, how and where."""
        return Record(
            recipe=self.recipe,
            table=self.table,
            dataset=self.dataset,
            row=self.row,
            scale=self.run.scale,
            seed=self.run.seed,
            reduced=self.run.reduced,
            overrides=self.overrides,
            config=to_data(self.run),
            metrics=split_metrics(metrics),
            history=history,
            wall_seconds=round(seconds, 3),
            parameters=parameters,
            versions=versions(),
            commit=commit(),
            hardware={**hardware(), "processes": processes, "precision": precision},
            finished=now(),
            unfinished=unfinished,
        )

    def write(self, folder: Path, machine: Machine) -> None:
        names = {"recipe": self.recipe, "table": self.table, "dataset": self.dataset, "row": self.row}
        write_sealed_json(folder / JOB, {**names, "overrides": list(self.overrides), "machine": machine.to_data()})

    @classmethod
    def read(cls, folder: Path) -> tuple[Job, Machine]:
        """The job of a folder and the machine it began on."""
        path = folder / JOB
        names = ("recipe", "table", "dataset", "row")
        data = read_sealed_json(path, (*names, "overrides", "machine"))
        if any(not isinstance(data.get(name), str) for name in names) or not isinstance(data.get("overrides"), list):
            raise InputError(f"{path} is not the job of a run: expected the texts {list(names)} and a list of overrides")
        for word in (*(data[name] for name in names), *data["overrides"]):
            if not isinstance(word, str) or any(map(is_control, word)):
                raise InputError(f"{path}: expected plain text, got {str(word)[:60]!r}")
        with reading(path):
            began = Machine.from_data(data.get("machine", {}))
        recipe, table, dataset, row = (data[name] for name in names)
        return cls(recipe, table, dataset, row, load_run(folder)[0], tuple(data["overrides"])), began
