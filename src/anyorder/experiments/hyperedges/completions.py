"""Completions of facts by a trained model: the best entities for the gap of one fact, or of each line of a file."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn

from anyorder.errors import InputError
from anyorder.experiments.hyperedges.fact_batches import FactShapes, GapBatch
from anyorder.experiments.hyperedges.facts import NOTHING, Facts, KnownAnswers, read_fields
from anyorder.files import replacing
from anyorder.suggest import nearest
from anyorder.training.answers import finite_answers
from anyorder.training.run import PredictRequest

GAP = "?"
_AT_ONCE = 256


def answer_facts(model: nn.Module, shapes: FactShapes, request: PredictRequest) -> str:
    """Complete the fact of ``--complete``, or each line of a file, which has a relation, entities and one ``?``."""
    pattern = request.options.get("complete")
    given = request.options.get("candidates") or (None if request.input is None else str(request.input))
    if (pattern is None) == (given is None):
        raise ValueError('say what to complete: --complete "relation,entity,?" or --input FILE with such a fact per line')
    top, skip = int(request.options.get("top", "10")), "skip_unknown" in request.options
    if top < 1:
        raise ValueError(f"--top must be at least 1, got {top}")
    if pattern is not None:
        listed = [("--complete", [name.strip() for name in pattern.split("\t" if "\t" in pattern else ",")])]
    else:
        listed = [(f"{given}, line {number}", line) for number, line in read_fields(Path(given or ""))]
    kept, batch, skipped = _asked(listed, shapes, skip=skip)
    if not kept:
        raise ValueError(f"none of the {len(listed)} facts is known: {skipped} have names that training did not see")
    lines = _completed(model, shapes, kept, batch, top)
    if pattern is not None and request.output is None:
        return "\n".join("  ".join(line[-3:]) for line in [["rank", "entity", "score"], *lines])
    output = request.output or Path(given or "").with_name(f"{Path(given or '').stem}-completed.csv")
    with replacing(output) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([["fact", "rank", "entity", "score"], *lines])
    left = f", {skipped} with unknown names left out" if skipped else ""
    return f"{len(kept)} facts completed in {output}{left}"


def _asked(
    listed: Sequence[tuple[str, list[str]]], shapes: FactShapes, *, skip: bool
) -> tuple[list[list[str]], GapBatch, int]:
    """The facts that can be asked about, and how many have unknown names."""
    relations = {name: n for n, name in enumerate(shapes.relations)}
    entities = {name: n for n, name in enumerate(shapes.entities)}
    kept: list[list[str]] = []
    rows: list[tuple[int, list[int], int]] = []
    for where, (relation, *names) in listed:
        if names.count(GAP) != 1 or not 2 <= len(names) <= shapes.places:
            raise InputError(f"{where}: expected a relation and 2 to {shapes.places} entities, one of them ?, got {names}")
        unknown = [] if relation in relations else [f"relation {relation!r}{nearest(relation, relations)}"]
        unknown += [f"entity {name!r}" for name in names if name != GAP and name not in entities]
        if unknown and not skip:
            raise InputError(f"{where}: {unknown[0]} is not of the training (--skip-unknown leaves such facts out)")
        if not unknown:
            numbers = [0 if name == GAP else entities[name] for name in names]
            rows.append((relations[relation], numbers + [NOTHING] * (shapes.places - len(names)), names.index(GAP)))
            kept.append([relation, *names])
    facts = Facts(*(np.array([row[n] for row in rows], np.int64) for n in (0, 1))) if rows else shapes.facts
    gaps = np.array([row[2] for row in rows], np.int64) if rows else np.zeros(len(facts), np.int64)
    return kept, GapBatch.of(facts, gaps), len(listed) - len(kept)


def _completed(model: nn.Module, shapes: FactShapes, kept: list[list[str]], batch: GapBatch, top: int) -> list[list[str]]:
    """The best entities of each gap that are not known to fill it, with the logarithms of their shares."""
    lines = []
    known = KnownAnswers([shapes.facts])
    for begin in range(0, len(batch), _AT_ONCE):
        part = GapBatch(*(rows[begin : begin + _AT_ONCE] for rows in batch.rows))
        with torch.inference_mode():
            scores = finite_answers(model(part), "facts").log_softmax(1)
            row, entity = known.matching(part.relation.numpy(), part.entities.numpy(), part.gap.numpy())
            scores[torch.from_numpy(row), torch.from_numpy(entity)] = -torch.inf
            best = scores.topk(min(top, scores.shape[1]), 1)
        for fact, values, who in zip(kept[begin:], best.values.tolist(), best.indices.tolist(), strict=False):
            lines += [
                [",".join(fact), str(rank), shapes.entities[entity], f"{value:.4f}"]
                for rank, (value, entity) in enumerate(zip(values, who, strict=True), 1)
                if value > -np.inf
            ]
    return lines
