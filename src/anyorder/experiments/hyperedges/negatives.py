"""Negative hyperedges: corrupted positives that are no known positive, drawn for whole batches at once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from anyorder.experiments.hyperedges.tuples import Ints, KnownTuples, checked_tuples, offsets_of

ROUND_CELLS = 2**20


@dataclass(frozen=True, eq=False)
class NegativeSampler:
    """Draws ``per_positive`` negatives for each positive.

    With probability ``one_position`` one random position, else every position, is replaced by uniform nodes of its
    type; a draw that is a known positive is repeated with the same positions, up to ``tries`` times. When these run
    out, or cannot succeed since every completion is known, all positions are replaced instead, again up to ``tries``
    times, and then a ValueError says so.

    >>> known = KnownTuples.of(np.array([[0, 2], [1, 3]]), sizes=(2, 3))
    >>> sampler = NegativeSampler(known, per_positive=2)
    >>> sampler(np.array([[0, 2]]), np.random.default_rng(0)).shape
    (2, 2)
    """

    known: KnownTuples
    per_positive: int = 5
    one_position: float = 0.9
    tries: int = 1000
    saturated: tuple[KnownTuples, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.per_positive < 1 or self.tries < 1:
            raise ValueError(f"per_positive and tries must be at least 1, got {self.per_positive} and {self.tries}")
        if not 0 <= self.one_position <= 1:
            raise ValueError(f"one_position is a probability in [0, 1], got {self.one_position}")
        object.__setattr__(self, "saturated", tuple(map(self.known.saturated, range(self.known.order))))

    def __call__(self, positives: NDArray[np.integer], generator: np.random.Generator) -> Ints:
        """Negatives of shape (n * per_positive, k): rows i * per_positive and on belong to positive i."""
        sources = self._checked(positives)
        rows = np.repeat(sources, self.per_positive, axis=0)
        order = self.known.order
        chosen = generator.integers(order, size=len(rows))
        chosen[generator.random(len(rows)) >= self.one_position] = order  # stands for all positions
        pending = self._fill(rows, chosen, np.arange(len(rows)), generator, tries=1)
        hopeless = self._hopeless(rows[pending], chosen[pending])
        left = self._fill(rows, chosen, pending[~hopeless], generator, tries=self.tries - 1)
        chosen[:] = order
        left = self._fill(rows, chosen, np.concatenate([left, pending[hopeless]]), generator, tries=self.tries)
        if len(left):
            raise ValueError(
                f"no negative found for {len(left)} rows in {self.tries} tries of all positions: the "
                f"{len(self.known)} known positives nearly fill the product of the types {self.known.sizes}"
            )
        return rows

    def _checked(self, positives: NDArray[np.integer]) -> Ints:
        sources = checked_tuples(positives, self.known.sizes, "positives")
        known = self.known.contains(sources)
        if not known.all():
            row = int(np.argmin(known))
            raise ValueError(
                f"positives: row {row} {sources[row].tolist()} is not among the known tuples; "
                "a sampler must know the tuples that it corrupts, or it may return them"
            )
        return sources

    def _hopeless(self, rows: Ints, chosen: Ints) -> NDArray[np.bool_]:
        """Rows that are known positives whatever node comes to the chosen position."""
        hopeless = np.zeros(len(rows), dtype=np.bool_)
        for position, full in enumerate(self.saturated):
            here = np.flatnonzero(chosen == position)
            if len(full) and len(here):
                others = [column for column in range(self.known.order) if column != position]
                shift = np.asarray(offsets_of(full.sizes)) - np.asarray(offsets_of(self.known.sizes))[others]
                hopeless[here] = full.contains(rows[here][:, others] + shift)
        return hopeless

    def _fill(self, rows: Ints, chosen: Ints, pending: Ints, generator: np.random.Generator, *, tries: int) -> Ints:
        """Write negatives into ``rows[pending]``, twice as many tries at once in every round; returns what is left."""
        done, width = 0, 1
        while len(pending) and done < tries:
            width = max(1, min(width, tries - done, ROUND_CELLS // len(pending)))
            drawn = self._draw(rows[pending], chosen[pending], width, generator)
            fresh = ~self.known.contains(drawn.reshape(self.known.order, -1).T).reshape(len(pending), width)
            found = fresh.any(axis=1)
            rows[pending[found]] = drawn[:, found, fresh[found].argmax(axis=1)].T
            pending = pending[~found]
            done, width = done + width, width * 2
        return pending

    def _draw(self, rows: Ints, chosen: Ints, width: int, generator: np.random.Generator) -> Ints:
        """``width`` corruptions of each row, laid out (position, row, try) to keep columns contiguous."""
        order, sizes = self.known.order, self.known.sizes
        drawn = np.empty((order, len(rows), width), dtype=np.int64)
        uniform = generator.random(drawn.shape)
        for position, (size, offset) in enumerate(zip(sizes, offsets_of(sizes), strict=True)):
            nodes = (uniform[position] * size).astype(np.int64) + offset
            keep = (chosen != position) & (chosen != order)
            np.copyto(drawn[position], np.where(keep[:, None], rows[:, position, None], nodes))
        return drawn
