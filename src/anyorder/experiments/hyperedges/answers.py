"""Questions to a trained hyperedge model: scores for the candidates in a file, and the best completions of a tuple."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from anyorder.datasets.csv_stream import read_rows
from anyorder.experiments.hyperedges.batches import Known, distinct_tuples
from anyorder.experiments.hyperedges.models import TupleNetwork
from anyorder.experiments.hyperedges.tables import encode_table
from anyorder.experiments.hyperedges.tuples import Ints, KnownTuples, offsets_of
from anyorder.experiments.hyperedges.vocabulary import Vocabulary
from anyorder.extras import require
from anyorder.files import replacing
from anyorder.training.answers import finite_answers
from anyorder.training.run import PredictRequest

CHUNK = 2**16  # tuples that are scored at once
MOST_COMPLETIONS = 10**8
SCORE = "score"


@dataclass(frozen=True)
class Form:
    """How the tables of a user are written."""

    header: bool = True
    delimiter: str = ","


class Scorer:
    """Probabilities of tuples, in chunks; a network that reads all nodes encodes them once."""

    def __init__(self, model: nn.Module, sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)
        with torch.no_grad():
            self._logits: Callable[[Tensor], Tensor] = model.scorer() if isinstance(model, TupleNetwork) else model

    def __call__(self, tuples: Ints) -> NDArray[np.float64]:
        distinct, place = distinct_tuples(tuples, self.sizes)
        with torch.no_grad():
            parts = [finite_answers(self._logits(part), "tuples") for part in torch.from_numpy(distinct).split(CHUNK)]
        return torch.cat(parts).double().sigmoid().numpy()[place] if parts else np.zeros(0)


def answer(model: nn.Module, known: Known, request: PredictRequest, form: Form) -> str:
    """Score the candidates of a file, or rank the completions of a tuple such as ``user42,?,?``."""
    numbers = tuple(tuple(str(number) for number in range(size)) for size in known.sizes)
    vocabulary = Vocabulary(known.names, known.vocabulary or numbers)
    given = request.options.get("candidates")
    candidates = Path(given) if given is not None else request.input
    pattern = request.options.get("complete")
    if (candidates is None) == (pattern is None):
        raise ValueError(
            "say what to predict: --candidates FILE adds a score to every row of a table, "
            f'--complete "{",".join(["?"] * len(known.sizes))}" with some names filled in ranks what fits the others'
        )
    scorer = Scorer(model, known.sizes)
    if candidates is not None:
        ending = "tsv" if form.delimiter == "\t" else "csv"
        output = request.output or candidates.with_name(f"{candidates.stem}-scored.{ending}")
        count = score_table(scorer, vocabulary, candidates, output, form)
        return f"{count} candidates scored in {output}"
    assert pattern is not None
    top = int(request.options.get("top", "10"))
    found = complete(scorer, vocabulary, pattern, top=top)
    seen = KnownTuples.of(known.train, known.sizes).contains(found.tuples)
    return _report(vocabulary, found, seen, request.output)


def score_table(scorer: Scorer, vocabulary: Vocabulary, path: Path, output: Path, form: Form) -> int:
    """Write the rows of a table again with a score at the end; an unknown name is refused with its line."""
    count = 0
    options: dict[str, Any] = {"header": form.header, "delimiter": form.delimiter}
    header = [*_header(path, form.delimiter), SCORE]
    if form.header and header.count(SCORE) > 1:
        raise ValueError(f"{path} has a column {SCORE!r} already: rename it, so that the new one can be told from it")
    with replacing(output) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n", delimiter=form.delimiter)
        if form.header:
            writer.writerow(header)
        for rows, tuples in _large(encode_table(path, vocabulary, **options)):
            writer.writerows([*row, f"{score:.6g}"] for row, score in zip(rows, scorer(tuples), strict=True))
            count += len(rows)
        if not count:
            raise ValueError(f"{path} has no candidates below its header")
    return count


def _large(chunks: Iterable[tuple[Any, Ints]]) -> Iterator[tuple[list[list[str]], Ints]]:
    """Chunks put together, so that the model is asked seldom."""
    rows: list[list[str]] = []
    tuples: list[Ints] = []
    for chunk, encoded in chunks:
        rows += chunk.rows
        tuples.append(encoded)
        if len(rows) >= CHUNK:
            yield rows, np.concatenate(tuples)
            rows, tuples = [], []
    if rows:
        yield rows, np.concatenate(tuples)


def _header(path: Path, delimiter: str) -> list[str]:
    _, first = next(read_rows(path, delimiter), (0, []))
    if not first:
        raise ValueError(f"{path} has no candidates: it is empty")
    return first


@dataclass(frozen=True, eq=False)
class Completions:
    """The best completions of a pattern, best first, of ``possible`` ones."""

    tuples: Ints
    scores: NDArray[np.float64]
    possible: int


def complete(scorer: Scorer, vocabulary: Vocabulary, pattern: str, *, top: int = 10) -> Completions:
    """Rank all tuples that agree with a pattern of names in which ``?`` stands for any node of its column."""
    if top < 1:
        raise ValueError(f"--top must be at least 1, got {top}")
    try:
        [fields] = csv.reader([pattern], strict=True)
    except (csv.Error, ValueError) as error:
        raise ValueError(f"--complete takes one tuple of names and gaps, such as 'user42,?,?', got {pattern!r}") from error
    query = vocabulary.encode_query([name.strip() for name in fields])
    open_places = [place for place, node in enumerate(query) if node is None]
    sizes = [vocabulary.sizes[place] for place in open_places]
    possible = math.prod(sizes)
    if possible > MOST_COMPLETIONS:
        raise ValueError(f"{pattern!r} has {possible:,} completions: fill in more names ({MOST_COMPLETIONS:,} at most)")
    shift = np.asarray(offsets_of(vocabulary.sizes), dtype=np.int64)[open_places]
    start = np.asarray([0 if node is None else node for node in query], dtype=np.int64)
    best, scores = np.zeros((0, len(query)), dtype=np.int64), np.zeros(0)
    for first in _tracked(range(0, possible, CHUNK)):
        numbers = np.arange(first, min(first + CHUNK, possible))
        tuples = np.tile(start, (len(numbers), 1))
        if open_places:
            tuples[:, open_places] = np.stack(np.unravel_index(numbers, sizes), axis=1) + shift
        best, scores = np.concatenate([best, tuples]), np.concatenate([scores, scorer(tuples)])
        order = np.argsort(-scores, kind="stable")[:top]
        best, scores = best[order], scores[order]
    return Completions(best, scores, possible)


def _tracked(steps: range) -> Iterable[int]:
    """The steps, behind a progress bar where there are many."""
    if len(steps) < 4:
        return steps
    tracked: Iterable[int] = require("rich.progress", "train").track(steps, description="Ranking", transient=True)
    return tracked


def _report(vocabulary: Vocabulary, found: Completions, seen: NDArray[np.bool_], output: Path | None) -> str:
    """The completions as an aligned table, or as a CSV file if there is an output."""
    head = ["rank", *vocabulary.columns, SCORE, "in training"]
    lines = [
        [str(rank), *names, f"{score:.4f}", "yes" if known else "no"]
        for rank, (names, score, known) in enumerate(
            zip(vocabulary.decode(found.tuples), found.scores, seen, strict=True), start=1
        )
    ]
    if output is not None:
        with replacing(output) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([head, *lines])
        return f"the best {len(lines)} of {found.possible} completions in {output}"
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    table = [[field.ljust(width) for field, width in zip(line, widths, strict=True)] for line in [head, *lines]]
    return "\n".join([*["  ".join(line).rstrip() for line in table], f"{len(lines)} of {found.possible} completions"])
