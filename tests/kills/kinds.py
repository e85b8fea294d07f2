"""Five kinds of training of a few seconds each, on data made from a seed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

COMMON = ["--quiet", "--save-every", "0", "--accelerator", "cpu"]
CHAINS = ["task.train_chains=12", "task.train_length=5", "task.test_length=6", "batch_size=3", "schedule.epochs=8"]


def make_data(folder: Path) -> None:
    """The files of all kinds."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "sets.npz", features=rng.normal(size=(60, 5, 2)), partition=np.tile([0, 0, 1, 1, 2], 60))
    chains = ["C" * (1 + n % 9) + ["O", "N", "F"][n % 3] for n in range(80)]
    rows = [f"{smiles},{len(smiles) % 5 + n % 2}" for n, smiles in enumerate(chains)]
    (folder / "molecules.csv").write_text("\n".join(["smiles,gap", *rows]) + "\n")
    rows = [f"u{n % 13},i{n * n % 29}" for n in range(300)]
    (folder / "tuples.csv").write_text("\n".join(["user,item", *rows]) + "\n")
    incidences = [{"edge": n // 3, "node": (7 * n) % 40} for n in range(120)]
    nodes = [{"node": n, "attrs": {"a": float(n % 7), "b": float(n % 3), "label": "xyz"[n % 3]}} for n in range(40)]
    (folder / "graph.json").write_text(json.dumps({"incidences": incidences, "nodes": nodes}))


def commands(data: Path) -> dict[str, list[str]]:
    """The command line of each kind, but for the folder of the run."""
    sizes = ["--channels", "16", "--layers", "2"]
    of_chains = [part for setting in CHAINS for part in ("--set", setting)]
    lines = {
        "graphs": ["run", "chains/ours-s-phi", *of_chains, "--set", "model.dropout=0.2"],
        "sets": ["train", "set-to-graph", "--data", f"{data / 'sets.npz'}", *sizes, "--epochs", "6"],
        "molecules": [
            "train",
            "molecules",
            "--data",
            f"{data / 'molecules.csv'}",
            "--target",
            "gap",
            *sizes,
            "--epochs",
            "6",
        ],
        "tuples": ["train", "hyperedges", "--data", f"{data / 'tuples.csv'}", "--columns", "user,item", "--epochs", "8"],
        "hypergraph": ["train", "hypergraph", "--hif", f"{data / 'graph.json'}", "--epochs", "40"],
    }
    return {kind: [*line, *COMMON] for kind, line in lines.items()}
