"""Predict which points of a set belong together, from a file of your own: make it, train, predict, compare.

python examples/own_sets.py [FOLDER]
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from anyorder.cli import main
from anyorder.experiments.set_to_graph.files import LabelKind
from anyorder.experiments.set_to_graph.partitions import rand_index
from anyorder.experiments.set_to_graph.sets import SetSample
from anyorder.experiments.set_to_graph.writers import write_sets


def stars(number: int, seed: int) -> tuple[list[SetSample], list[np.ndarray]]:
    """Sets of 4 to 12 stars around up to three centres; stars of one centre are a cluster."""
    rng = np.random.default_rng(seed)
    sets, clusters = [], []
    for _ in range(number):
        size = int(rng.integers(4, 13))
        cluster = rng.integers(0, 3, size)
        points = rng.uniform(-5, 5, (3, 2))[cluster] + rng.normal(0, 0.4, (size, 2))
        sets.append(SetSample.from_partition(points, cluster))
        clusters.append(cluster)
    return sets, clusters


def run(folder: Path) -> float:
    write_sets(folder / "stars.parquet", stars(400, seed=0)[0], LabelKind.PARTITION)
    new, clusters = stars(50, seed=1)
    write_sets(folder / "new.parquet", new, LabelKind.NONE)
    model, output = folder / "model", folder / "clusters.jsonl"
    size = ["--channels", "32", "--layers", "2", "--epochs", "10", "--learning-rate", "3e-3"]
    main(["train", "set-to-graph", "--data", str(folder / "stars.parquet"), "--out", str(model), "--quiet", *size])
    main(["predict", str(model), "--input", str(folder / "new.parquet"), "--output", str(output)])
    found = [json.loads(line)["partition"] for line in output.read_text().splitlines()]
    score = float(np.mean([rand_index(true, guess) for true, guess in zip(clusters, found, strict=True)]))
    print(f"Rand index on 50 new sets: {score:.3f}")
    return score


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        run(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            run(Path(temporary))
