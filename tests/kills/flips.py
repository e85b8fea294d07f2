"""``python -m kills.flips``: single bits of weights, training states and molecule stores changed, and how many are taken."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from anyorder.errors import InputError
from anyorder.experiments.molecules.data import BuildOptions, MoleculeStore, MoleculeTable, Target, build_store
from anyorder.training.checkpoints import digest, read_weights
from anyorder.training.fit import carry_out
from anyorder.training.states import read_state
from small_runs import QUIET, chains

COUNT = 300


def flip(path: Path, read: Callable[[Path], Any], rng: random.Random) -> tuple[int, int]:
    """How many of so many changed files are taken, and how many of these with another content."""
    raw, taken, other = path.read_bytes(), 0, 0
    whole = read(path)
    for _ in range(COUNT):
        place = rng.randrange(8 * len(raw))
        changed = bytearray(raw)
        changed[place // 8] ^= 1 << place % 8
        path.write_bytes(bytes(changed))
        try:
            found = read(path)
        except InputError:
            continue
        taken += 1
        other += found != whole
    path.write_bytes(raw)
    return taken, other


def main() -> None:
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        carry_out(chains("ours-s-phi"), work / "run", QUIET)
        rows = ["smiles,gap", *(f"{'C' * (1 + n % 9)}O,{n % 5}" for n in range(40))]
        (work / "m.csv").write_text("\n".join(rows))
        table = MoleculeTable(work / "m.csv", "smiles", (Target("gap"),))
        build_store(table, work / "store", BuildOptions(workers=0), progress=False)
        atoms = next((work / "store").glob("*.atoms.npy"))
        files: dict[Path, Callable[[Path], Any]] = {
            work / "run" / "model.safetensors": lambda path: digest(read_weights(path)),
            work / "run" / "last.ckpt": lambda path: digest(read_state(path)["state_dict"]),
            atoms: lambda path: MoleculeStore(path.parent)[0].atoms.tolist(),
        }
        print("| file | flips | taken | of these with other numbers |\n|---|---:|---:|---:|")
        for path, read in files.items():
            print(f"| {path.name} | {COUNT} | {' | '.join(map(str, flip(path, read, rng)))} |")


if __name__ == "__main__":
    main()
