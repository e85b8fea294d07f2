"""Whether a model tells two graphs apart: by the protocol of BREC, or with random weights where training does not fit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from anyorder.errors import InputError
from anyorder.experiments.expressivity.graphs import Graph
from anyorder.experiments.expressivity.models import WholeGraphModel, Width
from anyorder.experiments.expressivity.pairs import Pair
from anyorder.experiments.expressivity.refinement import tell_apart
from anyorder.training.config import configurable

How = Literal["exact", "trained", "random weights", "does not fit"]
HOWS: tuple[How, ...] = ("exact", "trained", "random weights", "does not fit")
WIDTH = 16
"""Of the vectors that are compared."""
THRESHOLD = 72.34
"""Of Hotelling's T^2 for 32 differences of 16 channels: 31 times the 95 % quantile of F(16, 16)."""
RIDGE = 1e-7
"""Added to the diagonal of the covariance, which is singular where a model is exactly invariant."""
FAR = 1e3
"""By how much a difference must exceed the noise between relabelled copies."""
ROUNDING = 1e-14
"""Noise is taken to be at least this share of the largest output: copies may agree by chance."""


@dataclass(frozen=True)
class Verdict:
    """What came of a pair; ``apart`` counts only where the reliability check holds.

    Attributes:
        statistic: T^2 where trained, largest difference over noise where weights are random, rounds where exact.
        check: the same for two copies of one graph, which must stay below the threshold.
        seconds: of CPU time.
    """

    group: str
    number: int
    nodes: int
    tuples: int
    how: How
    apart: bool
    reliable: bool
    statistic: float
    check: float
    seconds: float

    @classmethod
    def from_data(cls, data: Any) -> Verdict:
        """The inverse of ``to_data``; what is no verdict is refused."""
        made = cls(**data)
        texts, counts = (made.group, made.how), (made.number, made.nodes, made.tuples)
        numbers, answers = (made.statistic, made.check, made.seconds), (made.apart, made.reliable)
        good = made.how in HOWS and all(type(each) is str for each in texts) and all(type(each) is bool for each in answers)
        good = good and all(type(each) is int and 0 <= each < 2**63 for each in counts)
        if not good or not all(type(each) in (int, float) for each in numbers):
            raise InputError(f"expected a verdict, got {data!s:.200}")
        return made

    def to_data(self) -> dict[str, Any]:
        return asdict(self)

    def to_floats(self, groups: Sequence[str]) -> dict[str, float]:
        """As numbers, for the history of a record."""
        data = {**asdict(self), "group": groups.index(self.group), "how": HOWS.index(self.how)}
        return {name: float(value) for name, value in data.items()}


@configurable
@dataclass(frozen=True)
class Judge:
    """How pairs are judged.

    Attributes:
        train: train on each pair that has at most ``most_trained`` tuples in all copies together.
        most_tuples: of one graph; a pair with more does not fit.
    """

    train: bool = False
    copies: int = 32
    random_copies: int = 2
    epochs: int = 20
    batch_size: int = 16
    learning_rate: float = 1e-3
    good_loss: float = 0.2
    """Training ends when the mean cosine is below this, as in the published protocol."""
    most_trained: int = 200_000
    most_tuples: int = 4_000_000
    together: int = 400_000
    """Tuples of the graphs that go through a model at once, where weights are random."""

    def __post_init__(self) -> None:
        if self.copies <= WIDTH or self.random_copies < 2:
            raise ValueError(f"T^2 needs more than {WIDTH} copies, and random weights at least 2, got {self}")

    def judge(self, model: WholeGraphModel, pair: Pair, seed: int) -> Verdict:
        """The verdict on a pair: trained where asked for and where it fits, else with random weights, if that fits."""
        began = time.process_time()
        fitting, tuples = model.fitting((pair.first, pair.second), self.most_tuples)
        if fitting is None:
            return _verdict(pair, tuples, "does not fit", 0.0, 0.0, 1.0, began)
        if self.train and 2 * self.copies * tuples <= self.most_trained:
            return self._trained(fitting, pair, tuples, seed, began)
        return self._random(fitting, pair, tuples, seed, began)

    def _random(self, model: WholeGraphModel, pair: Pair, tuples: int, seed: int, began: float) -> Verdict:
        """Compare what random weights make of both graphs with what they make of relabelled copies, in float64."""
        torch.manual_seed(seed)
        module = model.build(Width(WIDTH)).double().eval()
        first, second = (copies(graph, self.random_copies + 1, seed) for graph in (pair.first, pair.second))
        graphs = [*first, *second]
        step = max(1, self.together // max(tuples, 1))
        with torch.no_grad():
            parts = [module(model.inputs(graphs[n : n + step], torch.float64)) for n in range(0, len(graphs), step)]
        one, other = torch.cat(parts).split(len(first))
        difference, noise, check = compare(one, other)
        return _verdict(pair, tuples, "random weights", difference / noise, check / noise, FAR, began)

    def _trained(self, model: WholeGraphModel, pair: Pair, tuples: int, seed: int, began: float) -> Verdict:
        """Train on relabelled copies to make both graphs differ, then test others of their copies."""
        torch.manual_seed(seed)
        module = model.build(Width(WIDTH)).double()
        first, second = (copies(graph, 2 * self.copies, seed) for graph in (pair.first, pair.second))
        one, other = first[: self.copies], second[: self.copies]
        batches = [
            model.inputs([*one[n : n + self.batch_size], *other[n : n + self.batch_size]], torch.float64)
            for n in range(0, self.copies, self.batch_size)
        ]
        self._fit(module, batches)
        with torch.no_grad():
            answers = [module(batch).chunk(2) for batch in batches]
            again = module(model.inputs(first[self.copies :], torch.float64))
        mine, yours = (torch.cat(side) for side in zip(*answers, strict=True))
        return _verdict(pair, tuples, "trained", hotelling(mine - yours), hotelling(mine - again), THRESHOLD, began)

    def _fit(self, module: torch.nn.Module, batches: Sequence[Any]) -> None:
        optimiser = torch.optim.Adam(module.parameters(), lr=self.learning_rate)
        for _ in range(self.epochs):
            total = 0.0
            for batch in batches:
                one, other = module(batch).chunk(2)
                loss = torch.cosine_similarity(one, other).clamp(min=0).mean()
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                total += float(loss.detach())
            if total / len(batches) < self.good_loss:
                break


def judge_exactly(pair: Pair, order: int) -> Verdict:
    """What k-WL says of a pair; the same graph with other numbers is the check."""
    began = time.process_time()
    found = tell_apart(pair.first, pair.second, order)
    [copy] = copies(pair.first, 1, pair.number)
    same = tell_apart(pair.first, copy, order, most_rounds=found.rounds)
    tuples = pair.num_nodes ** (order if order < 3 else order - 1)
    verdict = _verdict(pair, tuples, "exact", float(found.apart), float(same.apart), 0.5, began)
    return Verdict(**{**asdict(verdict), "statistic": float(found.rounds)})


def _verdict(pair: Pair, tuples: int, how: How, statistic: float, check: float, threshold: float, began: float) -> Verdict:
    seconds = round(time.process_time() - began, 3)
    apart, reliable = statistic > threshold, check <= threshold
    return Verdict(pair.group, pair.number, pair.num_nodes, tuples, how, apart, reliable, statistic, check, seconds)


def copies(graph: Graph, count: int, seed: int) -> list[Graph]:
    """The same graph with its nodes numbered anew, ``count`` times."""
    random = np.random.default_rng((seed, graph.num_nodes, int(graph.edges.sum())))
    return [graph.relabel(random.permutation(graph.num_nodes)) for _ in range(count)]


def compare(one: Tensor, other: Tensor) -> tuple[float, float, float]:
    """The least difference of the graphs, the largest between copies of one, and that of a copy kept for the check."""
    scale = float(torch.cat([one, other]).abs().max())
    apart = torch.cdist(one[:-1], other[:-1], p=torch.inf).min()
    noise = max(float(torch.cdist(side[:-1], side[:-1], p=torch.inf).max()) for side in (one, other))
    check = max(float((side[:-1] - side[-1]).abs().max()) for side in (one, other))
    return float(apart), max(noise, ROUNDING * scale, 1e-300), check


def hotelling(differences: Tensor) -> float:
    """Hotelling's T^2 of the hypothesis that the differences, one per row, have mean zero.

    >>> hotelling(torch.ones(32, 16, dtype=torch.float64)) > 1e9, hotelling(torch.zeros(32, 16, dtype=torch.float64))
    (True, 0.0)
    """
    mean = differences.mean(0)
    covariance = differences.T.cov() + RIDGE * torch.eye(differences.shape[1], dtype=differences.dtype)
    return float(len(differences) * mean @ torch.linalg.solve(covariance, mean))
