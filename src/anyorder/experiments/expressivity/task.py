"""Pairs of graphs as a task: each is judged on its own, and what is judged is kept."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from anyorder.errors import reading
from anyorder.experiments.expressivity.formulas import exp
from anyorder.experiments.expressivity.models import WholeGraphModel
from anyorder.experiments.expressivity.pairs import GROUPS, Pair, brec, csl, sr25
from anyorder.experiments.expressivity.verdicts import Judge, Verdict, judge_exactly
from anyorder.files import write_bytes
from anyorder.training.config import configurable
from anyorder.training.jobs import Job
from anyorder.training.lock import holding
from anyorder.training.records import RECORD, Record
from anyorder.training.run import DirectTask, ModelConfig

VERDICTS = "verdicts.jsonl"
Name = Literal["BREC", "CSL", "SR25", "EXP"]
DATASETS: tuple[Name, ...] = ("BREC", "CSL", "SR25", "EXP")


@configurable
@dataclass(frozen=True)
class ColourRefinement(ModelConfig):
    """k-WL itself, in its oblivious version, which is what layers of order k are as strong as."""

    order: int = 3

    def build(self, shapes: Any) -> Any:
        raise ValueError("colour refinement has no weights to build")


@configurable
@dataclass(frozen=True)
class GraphPairs(DirectTask):
    """Which pairs of graphs a model tells apart, and how each was judged."""

    dataset: Name = "BREC"
    judge: Judge = field(default_factory=Judge)

    def pairs(self, data_dir: Path | None) -> list[Pair]:
        if self.dataset == "BREC":
            return brec(data_dir=data_dir)
        if self.dataset == "SR25":
            return sr25(data_dir=data_dir)
        return csl() if self.dataset == "CSL" else exp()

    def carry_out(self, job: Any, folder: Path, machine: Any, *, fresh: bool) -> Record:
        """Judge the pairs that are not judged yet, the smallest first, and write the record however that ends."""
        pairs = sorted(self.pairs(machine.data_dir), key=lambda pair: pair.num_nodes)
        began = time.perf_counter()
        with holding(folder):
            if fresh:
                (folder / VERDICTS).unlink(missing_ok=True)
            job.write(folder, machine)
            done = {(verdict.group, verdict.number): verdict for verdict in read_verdicts(folder / VERDICTS)}
            write_bytes(folder / VERDICTS, "".join(map(_line, done.values())).encode())  # without half a line at its end
            try:
                for pair in pairs:
                    if machine.minutes is not None and time.perf_counter() - began > 60 * machine.minutes:
                        break
                    if (pair.group, pair.number) not in done:
                        verdict = self._one(job.run.model, pair, job.run.seed)
                        done[pair.group, pair.number] = verdict
                        _append(folder / VERDICTS, verdict)
            finally:  # a pair that needs more memory than is free now, or a signal: what was judged counts
                record = make_record(job, list(done.values()), len(pairs))
                record.write(folder / RECORD)
        return record

    def _one(self, model: ModelConfig, pair: Pair, seed: int) -> Verdict:
        if isinstance(model, ColourRefinement):
            return judge_exactly(pair, model.order)
        assert isinstance(model, WholeGraphModel)
        return self.judge.judge(model, pair, seed)


def read_verdicts(path: Path) -> list[Verdict]:
    """The verdicts of a file, one per line; none where there is no file.

    A last line without an end is of a process that was killed or had no room: that verdict is made again.
    """
    if not path.exists():
        return []
    with reading(path, "a file of verdicts"):
        whole, end, _ = path.read_text(encoding="utf-8").rpartition("\n")
        return [Verdict.from_data(json.loads(line)) for line in whole.split("\n")] if end else []


def _append(path: Path, verdict: Verdict) -> None:
    with path.open("a") as file:
        file.write(_line(verdict))


def _line(verdict: Verdict) -> str:
    return json.dumps(verdict.to_data()) + "\n"


def make_record(job: Job, verdicts: Sequence[Verdict], total: int) -> Record:
    """The record of some verdicts: counts for the whole and for each group, and each verdict in the history."""
    groups = [*GROUPS] if getattr(job.run.task, "dataset", "") == "BREC" else [""]
    metrics = summarise(verdicts)
    for group in groups if len(groups) > 1 else ():
        own = [verdict for verdict in verdicts if verdict.group == group]
        metrics.update({f"{group}/{name}": value for name, value in summarise(own).items()})
    ordered = sorted(verdicts, key=lambda verdict: (groups.index(verdict.group), verdict.number))
    return job.record(
        metrics,
        [verdict.to_floats(groups) for verdict in ordered],
        seconds=sum(verdict.seconds for verdict in verdicts),
        unfinished="" if len(verdicts) == total else f"{len(verdicts)} of {total} pairs",
    )


def summarise(verdicts: Sequence[Verdict]) -> dict[str, float]:
    """How many pairs are told apart, how many were judged, how many of them trained, and how many failed the check."""
    trained = sum(verdict.how == "trained" for verdict in verdicts)
    judged = sum(verdict.how != "does not fit" for verdict in verdicts)
    return {
        "pairs": sum(verdict.apart and verdict.reliable for verdict in verdicts),
        "judged": judged,
        "trained": trained,
        "unreliable": sum(not verdict.reliable for verdict in verdicts),
    }
