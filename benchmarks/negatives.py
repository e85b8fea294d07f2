"""Speed of the negative sampler on one core, by positives a call: python benchmarks/negatives.py [--folder DIR]."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from anyorder.experiments.hyperedges.data import TypedHyperedges, read_hyperedges
from anyorder.experiments.hyperedges.negatives import NegativeSampler
from anyorder.experiments.hyperedges.tuples import KnownTuples, offsets_of


def synthetic(sizes: tuple[int, ...], count: int, seed: int = 0) -> TypedHyperedges:
    """Uniform random hyperedges."""
    drawn = np.random.default_rng(seed).integers(0, sizes, size=(count, len(sizes))) + np.asarray(offsets_of(sizes))
    return TypedHyperedges(sizes=sizes, train=drawn, test=drawn[:0])


def negatives_per_second(data: TypedHyperedges, batch: int, seconds: float = 1.0) -> float:
    """Negatives drawn per second of processor time, in calls of ``batch`` positives."""
    sampler = NegativeSampler(KnownTuples.of(data.train, data.sizes))
    generator = np.random.default_rng(0)
    positives = data.train[generator.integers(len(data.train), size=batch)]
    sampler(positives, generator)
    drawn, start = 0, time.process_time()
    while (elapsed := time.process_time() - start) < seconds:
        drawn += len(sampler(positives, generator))
    return drawn / elapsed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="folder with GPS, MovieLens, drug, wordnet; synthetic data without")
    folder = parser.parse_args().folder
    names = ("GPS", "MovieLens", "drug", "wordnet")
    sets = (
        {name: read_hyperedges(folder / name) for name in names}
        if folder
        else {
            "146 x 70 x 5": synthetic((146, 70, 5), 1154),
            "2k x 6k x 8k": synthetic((2000, 6000, 8000), 40_000),
            "40k x 18 x 40k": synthetic((40_000, 18, 40_000), 120_000),
            "6 types of 10k": synthetic((10_000,) * 6, 100_000),
        }
    )
    for name, data in sets.items():
        rates = (f"{batch} a call: {negatives_per_second(data, batch) / 1e6:5.2f} M/s" for batch in (96, 1000, 20_000))
        print(f"{name:>16}  " + "   ".join(rates))


if __name__ == "__main__":
    main()
