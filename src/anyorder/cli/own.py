"""What all commands ``anyorder train`` share: the folder of a model, and training into it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from anyorder.cli.experiments import RUNS, machine


def model_folder(args: argparse.Namespace, kind: str, stem: str) -> Path:
    """Where the model goes, unless a finished one is there."""
    from anyorder.training.records import RECORD, Record
    from anyorder.training.run import slug

    name = f"{slug(stem)}-{args.model}"
    folder: Path = args.out or RUNS / kind / (name if args.seed == 0 else f"{name}-seed-{args.seed}")
    if (folder / RECORD).exists() and not Record.read(folder / RECORD).unfinished:
        raise ValueError(f"{folder} holds a trained model already: use another folder with --out")
    return folder


def train(run: Any, args: argparse.Namespace, folder: Path, *, kind: str, data: str, use: str) -> int:
    """Carry out a run with the changes of ``--set`` and say what came of it; ``use`` is what the model is good for."""
    from anyorder.training.config import override
    from anyorder.training.fit import Job, carry_out
    from anyorder.training.session import summary

    for setting in args.set:
        run = override(run, setting)
    job = Job(f"own/{kind}", "own", data, args.model, run, tuple(args.set))
    record = carry_out(job, folder, machine(args))
    print(summary(record))
    print(f"in {folder}; {use}")
    if record.unfinished:
        print(f"`anyorder resume {folder}` goes on with the training")
    return 0
