"""Completions of facts by a trained model: the best entities for the gaps of one fact, or of each line of a file."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
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
_AT_ONCE, _BEAM = 256, 20


def answer_facts(model: nn.Module, shapes: FactShapes, request: PredictRequest) -> str:
    """Complete the fact of ``--complete``, or each line of a file, which has a relation, entities and ``?`` for gaps."""
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
    kept, skipped = _asked(listed, shapes, skip=skip)
    if not kept:
        raise ValueError(f"none of the {len(listed)} facts is known: {skipped} have names that training did not see")
    lines = _completed(model, shapes, kept, top)
    if pattern is not None and request.output is None:
        return "\n".join("  ".join(line[-3:]) for line in [["rank", "entity", "score"], *lines])
    output = request.output or Path(given or "").with_name(f"{Path(given or '').stem}-completed.csv")
    with replacing(output) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([["fact", "rank", "entity", "score"], *lines])
    left = f", {skipped} with unknown names left out" if skipped else ""
    return f"{len(kept)} facts completed in {output}{left}"


@dataclass(frozen=True)
class _Asked:
    """A fact with gaps, as it was written and in numbers."""

    text: str
    relation: int
    entities: tuple[int, ...]
    """Filled with NOTHING, as gaps are."""
    gaps: tuple[int, ...]


def _asked(listed: Sequence[tuple[str, list[str]]], shapes: FactShapes, *, skip: bool) -> tuple[list[_Asked], int]:
    """The facts that can be asked about, and how many have unknown names."""
    relations = {name: n for n, name in enumerate(shapes.relations)}
    entities = {name: n for n, name in enumerate(shapes.entities)}
    kept: list[_Asked] = []
    for where, (relation, *names) in listed:
        if GAP not in names or not 2 <= len(names) <= shapes.places:
            raise InputError(
                f"{where}: expected a relation and 2 to {shapes.places} entities, at least one of them ?, got {names}"
            )
        unknown = [] if relation in relations else [f"relation {relation!r}{nearest(relation, relations)}"]
        unknown += [f"entity {name!r}" for name in names if name != GAP and name not in entities]
        if unknown and not skip:
            raise InputError(f"{where}: {unknown[0]} is not of the training (--skip-unknown leaves such facts out)")
        if not unknown:
            numbers = [NOTHING if name == GAP else entities[name] for name in names]
            filled = (*numbers, *[NOTHING] * (shapes.places - len(names)))
            gaps = tuple(place for place, name in enumerate(names) if name == GAP)
            kept.append(_Asked(",".join([relation, *names]), relations[relation], filled, gaps))
    return kept, len(listed) - len(kept)


def _completed(model: nn.Module, shapes: FactShapes, kept: list[_Asked], top: int) -> list[list[str]]:
    """The best completions of each fact that are not of the training, with the logarithms of their shares."""
    known = KnownAnswers([shapes.facts])
    lines = []
    for number in sorted({len(asked.gaps) for asked in kept}):
        same = [asked for asked in kept if len(asked.gaps) == number]
        for begin in range(0, len(same), _AT_ONCE):
            lines += _searched(model, shapes, known, same[begin : begin + _AT_ONCE], top)
    place = {asked.text: n for n, asked in enumerate(kept)}
    return sorted(lines, key=lambda line: place[line[0]])


def _searched(model: nn.Module, shapes: FactShapes, known: KnownAnswers, asked: list[_Asked], top: int) -> list[list[str]]:
    """Beam search: gaps are filled from left to right, those to come being absent, and the best sums are kept."""
    beams = [(n, 0.0, fact.entities) for n, fact in enumerate(asked)]
    for step in range(gaps := len(asked[0].gaps)):
        last = step == gaps - 1
        found: list[list[tuple[int, float, tuple[int, ...]]]] = [[] for _ in asked]
        for begin in range(0, len(beams), _AT_ONCE):
            part = beams[begin : begin + _AT_ONCE]
            at = [asked[n].gaps[step] for n, _, _ in part]
            for (n, score, entities), gap, (values, who) in zip(
                part, at, _best(model, known if last else None, asked, part, at, max(top, _BEAM)), strict=True
            ):
                found[n] += [
                    (n, score + value, (*entities[:gap], entity, *entities[gap + 1 :]))
                    for value, entity in zip(values, who, strict=True)
                    if value > -np.inf
                ]
        beams = [
            beam for each in found for beam in sorted(each, key=lambda beam: -beam[1])[: top if last else max(top, _BEAM)]
        ]
    lines, rank = [], Counter[int]()
    for n, score, entities in beams:
        rank[n] += 1
        names = ",".join(shapes.entities[entities[gap]] for gap in asked[n].gaps)
        lines.append([asked[n].text, str(rank[n]), names, f"{score:.4f}"])
    return lines


def _best(
    model: nn.Module,
    known: KnownAnswers | None,
    asked: list[_Asked],
    beams: list[tuple[int, float, tuple[int, ...]]],
    gap: list[int],
    count: int,
) -> list[tuple[list[float], list[int]]]:
    """The best entities for the gap of each beam, but for those that make a known fact."""
    entities = np.array([row for _, _, row in beams], np.int64)
    entities[np.arange(len(gap)), gap] = 0  # there, and any
    facts = Facts(np.array([asked[n].relation for n, _, _ in beams], np.int64), entities)
    batch = GapBatch.of(facts, np.array(gap, np.int64))
    with torch.inference_mode():
        scores = finite_answers(model(batch), "facts").log_softmax(1)
        if known is not None:
            row, entity = known.matching(batch.relation.numpy(), batch.entities.numpy(), batch.gap.numpy())
            scores[torch.from_numpy(row), torch.from_numpy(entity)] = -torch.inf
        best = scores.topk(min(count, scores.shape[1]), 1)
    return list(zip(best.values.tolist(), best.indices.tolist(), strict=True))
