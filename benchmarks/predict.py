"""`anyorder predict` on 1,000, 10,000 and 100,000 molecules, sets and tuples: rows a second, and memory that does not grow.

    OMP_NUM_THREADS=1 python benchmarks/predict.py

Data are made from a seed, and each model is trained on them for one epoch: what it has learned does not change its speed.
Every prediction is a process of its own, so that its time includes the start.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from anyorder.bench.fits import aligned

CORES = ("c1ccccc1", "c1ccncc1", "C1CCCCC1", "c1ccsc1", "C1CCNCC1", "c1ccc2ccccc2c1")
ENDS = ("O", "N", "F", "Cl", "C(=O)O", "C(=O)N", "OC", "S(=O)(=O)C", "C#N", "C(F)(F)F")


def write_molecules(path: Path, rows: int) -> None:
    """Chains with a ring and a group at the end, 8 to 25 heavy atoms, and a number."""
    draw = np.random.default_rng(rows)
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["smiles", "value"])
        for _ in range(rows):
            chain = "".join(draw.choice(["C", "N", "O", "C(C)"], size=int(draw.integers(1, 12)), p=[0.6, 0.1, 0.1, 0.2]))
            table.writerow([f"{draw.choice(CORES)}C{chain}C{draw.choice(ENDS)}", len(chain) + draw.normal()])


def write_sets(path: Path, rows: int) -> None:
    """Sets of 10 to 40 points in four clusters."""
    draw = np.random.default_rng(rows)
    sizes = draw.integers(10, 41, size=rows)
    partition = draw.integers(0, 4, size=int(sizes.sum()))
    centres = np.array([[0, 0], [3, 0], [0, 3], [3, 3]])
    features = (centres[partition] + draw.normal(size=(len(partition), 2))).astype(np.float32)
    np.savez(path, features=features, sizes=sizes, partition=partition)


def write_tuples(path: Path, rows: int) -> None:
    """Users, items and tags."""
    draw = np.random.default_rng(rows)
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["user", "item", "tag"])
        for user, item in draw.integers(0, 40, size=(rows, 2)).tolist():
            table.writerow([f"user{user}", f"item{item}", f"tag{(user + item) % 7}"])


KINDS: dict[str, tuple[Callable[[Path, int], None], str, list[str], list[str]]] = {
    "molecules": (write_molecules, "csv", ["--target", "value", "--alone"], ["--input"]),
    "set-to-graph": (write_sets, "npz", [], ["--input"]),
    "hyperedges": (write_tuples, "csv", ["--columns", "user,item,tag"], ["--candidates"]),
}


def call(*words: str) -> tuple[float, float]:
    """Wall seconds and peak memory in GB of a command; an error ends the benchmark with what it said."""
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen([sys.executable, "-m", "anyorder", *words], stdout=said, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            sys.exit(f"{' '.join(words)} failed:\n{said.read()}")
    return time.perf_counter() - start, usage.ru_maxrss * 1024 / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", choices=[*KINDS], default=[*KINDS])
    parser.add_argument("--rows", nargs="+", type=int, default=[1_000, 10_000, 100_000])
    chosen = parser.parse_args()
    lines = [("", "rows", "seconds", "rows/s", "GB")]
    for kind in chosen.kinds:
        write, ending, train, option = KINDS[kind]
        with tempfile.TemporaryDirectory() as folder:
            known, model = Path(folder, f"known.{ending}"), Path(folder, "model")
            write(known, 1_000)
            call("train", kind, str(known), *train, "--epochs", "1", "--out", str(model))
            for rows in chosen.rows:
                asked = Path(folder, f"asked.{ending}")
                write(asked, rows)
                answers = Path(folder, f"answers-{rows}.{'csv' if ending == 'csv' else 'jsonl'}")
                seconds, memory = call("predict", str(model), *option, str(asked), "--output", str(answers))
                lines.append((kind, f"{rows:,}", f"{seconds:.1f}", f"{rows / seconds:,.0f}", f"{memory:.2f}"))
    print(aligned(lines))


if __name__ == "__main__":
    main()
