"""What came of a training on own data: a model beside cheap answers, with intervals, and a warning where it lags."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from anyorder.training.checkpoints import load_model
from anyorder.training.loaders import Loaders
from anyorder.training.records import Record, split_metrics, write_record
from anyorder.training.run import Answers, Run, Task
from anyorder.training.scores import Score, score_table

_DRAWS, _MANY = 120, 2_000
_FALLING = ("MAE", "RMSE", "scaled MAE", "loss", "cross-entropy")
"""Metrics of which less is better."""


@dataclass(frozen=True)
class Outcome:
    """The record of a training, and the rows of its last table: the model first."""

    record: Record
    rows: tuple[tuple[str, tuple[Score, ...]], ...]

    @property
    def ahead(self) -> str:
        """The cheap answer that is ahead of the model in the first metric; empty where none is."""
        name, ours = self.rows[0][1][0].name, self.rows[0][1][0].value
        found = {title: known[name].value for title, scores in self.rows[1:] if name in (known := _by_name(scores))}
        sign = 1.0 if name in _FALLING else -1.0
        best = min(found, key=lambda title: sign * found[title], default="")
        return best if best and sign * found[best] < sign * ours else ""


TRAINED = "all epochs, not yet scored,"
"""What a record says between the last epoch and ``conclude``: a run that is killed there is concluded by the next start."""


def conclude(run: Run, folder: Path, record: Record, *, data_dir: Path | None = None) -> Outcome:
    """Score a trained model and what stands beside it on the test part, and write both into the record."""
    splits = run.task.load(seed=run.seed, data_dir=data_dir)
    model = load_model(folder)[1]
    found = run.task.conclude(run, model, splits, folder) or [Answers("model", collect(run, model, splits.test))]
    rows = [(each.title, scores(run.task, each.collected)) for each in found]
    known = split_metrics(run.task.metrics(found[0].collected))
    parts = {part: values for part, values in known.items() if part}
    metrics = {"": known.get("", {}), **parts}
    for each in found[1:]:
        for part, values in split_metrics(run.task.metrics(each.collected)).items():
            metrics[f"{each.title}, {part}" if part else each.title] = values
    rows += [(part, _bare(parts[part])) for part in run.task.beside(tuple(parts))]
    made = replace(record, metrics=metrics, unfinished="" if record.unfinished == TRAINED else record.unfinished)
    write_record(folder, made)
    return Outcome(made, tuple(rows))


def chosen_epochs(run: Run, record: Record) -> int:
    """After how many epochs the best evaluation came."""
    selection = run.task.selection
    if selection is None:
        return len(record.history)
    seen = [entry for entry in record.history if math.isfinite(entry.get(selection.metric, math.nan))]
    if not seen:
        return len(record.history)
    best = (min if selection.mode == "min" else max)(seen, key=lambda entry: entry[selection.metric])
    return int(best["epoch"]) + 1


def collect(run: Run, model: nn.Module, part: Any) -> dict[str, Tensor]:
    """What an evaluation keeps of all items of a part."""
    torch.manual_seed(run.seed)
    with torch.inference_mode():
        kept = [run.task.evaluate(model.eval(), batch) for batch in Loaders(run, rank=0, world=1).evaluation(part)]
    return {name: torch.cat([rows[name].cpu() for rows in kept]) for name in kept[0]}


def scores(task: Task, collected: dict[str, Tensor]) -> tuple[Score, ...]:
    """Metrics with the interval that holds them in 95 of 100 redraws of the rows, the one that counts first."""
    whole = task.metrics(collected)
    names = [name for name in whole if "/" not in name and name != "loss"] or ["loss"]
    names.sort(key=lambda name: name != task.score_name)
    rows = len(next(iter(collected.values())))
    random = np.random.default_rng(0)
    drawn: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(_DRAWS if rows <= _MANY else _DRAWS // 8):
        chosen = torch.from_numpy(random.integers(0, rows, rows))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # redraws of few rows may lack a class
            try:
                found = task.whole_metrics({name: values[chosen] for name, values in collected.items()})
            except ValueError:
                continue
        for name in names:
            drawn[name].append(found.get(name, math.nan))
    return tuple(_score(name, whole[name], drawn[name], rows) for name in names)


def told(outcome: Outcome, folder: Path, *, part: str = "test", use: str = "", hint: str = "") -> str:
    """The last words of a training: both rows, a warning where the model lags, and the next command."""
    lines = [score_table(outcome.rows, part=part)]
    if outcome.ahead:
        lines.append(f"warning: the model does not beat {outcome.ahead}{f'; {hint}' if hint else ''}")
    if outcome.record.unfinished:
        lines.append(f"{outcome.record.unfinished} so far; `anyorder resume {folder}` resumes the training")
    return "\n".join([*lines, f"next: {use}"])


def mean_rows(outcomes: Sequence[Outcome]) -> Outcome:
    """Mean and deviation over folds."""
    rows = []
    for each in zip(*(outcome.rows for outcome in outcomes), strict=True):
        made = []
        for same in zip(*(scores for _, scores in each), strict=False):
            values = [score.value for score in same]
            mean, spread = float(np.mean(values)), float(np.std(values))
            made.append(Score(same[0].name, mean, mean - spread, mean + spread))
        titles = dict.fromkeys(title for title, _ in each)
        rows.append((next(iter(titles)) if len(titles) == 1 else "baseline", tuple(made)))
    return Outcome(outcomes[-1].record, tuple(rows))


def _bare(values: dict[str, float]) -> tuple[Score, ...]:
    return tuple(Score(name, value, math.nan, math.nan) for name, value in values.items())


def _by_name(scores: Sequence[Score]) -> dict[str, Score]:
    return {score.name: score for score in scores}


def _score(name: str, whole: float, drawn: list[float], rows: int) -> Score:
    """A metric with its interval: Wilson's for an accuracy, which holds where all rows are right, too; else of redraws."""
    if name == "accuracy":
        percent = whole if whole > 1 else 100 * whole
        found = Score.of_share(name, percent, rows)
        return found if whole > 1 else Score(name, whole, found.low / 100, found.high / 100)
    known = [value for value in drawn if value == value]
    if not known:
        return Score(name, whole, math.nan, math.nan)
    low, high = np.quantile(known, [0.025, 0.975])
    return Score(name, whole, float(low), float(high))


__all__ = ["Answers", "Outcome", "collect", "conclude", "mean_rows", "scores", "told"]
