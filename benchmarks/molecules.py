"""Speed on molecules: python benchmarks/molecules.py [--batch-size N] [--rows ours gin-vn] [--preprocess] [--data-dir DIR].

Prints molecules a second for forward and backward of the protocol's models (or the quick ones), and the share of a step
that making the batch (reading, collating, planning) would take if no worker did it. Times on the CPU are CPU seconds of one
thread, which other work on the machine does not stretch. ``--preprocess`` times SMILES to graphs instead.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from anyorder.datasets import registry
from anyorder.experiments.molecules.data import QM9_GAP, BuildOptions, build_store
from anyorder.experiments.molecules.goals import MoleculeShapes
from anyorder.experiments.molecules.models import MoleculeModel
from anyorder.experiments.molecules.recipes import MODELS, QUICK
from anyorder.experiments.molecules.task import NamedMolecules

ROWS = {"ours-small": "Ours (S, phi)_SMALL", "ours": "Ours (S, phi)", "gin-vn": "GIN-VN", "mlp_pi": "MLP_pi (S)"}
SHAPES = MoleculeShapes("regression", ("gap",), (6.86,), (1.28,))


def seconds(work: Callable[[], object], device: str, repeats: int) -> float:
    """The fastest of some repeats, after one to warm up."""
    clock = time.process_time if device == "cpu" else time.perf_counter
    times = []
    for _ in range(repeats + 1):
        start = clock()
        work()
        if device != "cpu":
            torch.cuda.synchronize()
        times.append(clock() - start)
    return min(times[1:])


def measure(config: MoleculeModel, batch_size: int, device: str, repeats: int, data_dir: Path | None) -> tuple[float, float]:
    """Seconds to make a batch and seconds of a step on it."""
    data = NamedMolecules("qm9").load(seed=0, data_dir=data_dir).train
    chosen = np.random.default_rng(0).integers(len(data), size=batch_size).tolist()  # type: ignore[arg-type]
    load = seconds(lambda: config.inputs([data[number] for number in chosen]), "cpu", repeats)
    batch = config.inputs([data[number] for number in chosen]).to(device)
    model = config.build(SHAPES).to(device)
    return load, seconds(lambda: model.goal.loss(model(batch), batch.targets).backward(), device, repeats)


def preprocess(data_dir: Path | None, workers: int) -> None:
    """SMILES to graphs, for all of QM9."""
    table = QM9_GAP.table(registry.data_dir(data_dir))
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        store = build_store(table, Path(folder) / "store", BuildOptions(workers=workers))
        elapsed = time.perf_counter() - start
        size = sum(file.stat().st_size for file in store.path.iterdir())
    peak = sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 2**20
    rate = len(store) / elapsed
    print(f"{len(store):,} molecules in {elapsed:.0f} s on {workers} processes: {rate:,.0f} a second, {size / 1e6:.0f} MB")
    print(f"peak memory of this process and the largest worker together: {peak:.2f} GB")
    print(f"3.8 million molecules at this rate: {3.8e6 / rate / 60:.0f} minutes, {3.8e6 * size / len(store) / 1e9:.1f} GB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=["ours-small", "gin-vn"])
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--quick", action="store_true", help="the models of the quick scale")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--preprocess", action="store_true")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    if args.preprocess:
        preprocess(args.data_dir, args.workers)
        return
    torch.set_num_threads(1)
    for name in args.rows:
        config = QUICK[ROWS[name]][0] if args.quick else MODELS[ROWS[name]]
        load, step = measure(config, args.batch_size, args.device, args.repeats, args.data_dir)
        rate = f"{args.batch_size / step:8,.0f} molecules a second"
        share = f"making the batch {1e3 * load:5.0f} ms, {load / step:.1%} of the step"
        print(f"{ROWS[name]:>22}: {rate}, {1e3 * step:7.0f} ms a step; {share}")


if __name__ == "__main__":
    main()
