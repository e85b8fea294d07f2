"""Options that commands share: where and how to run."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

RUNS = Path("runs")
"""Where runs go by default."""


def add_machine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--devices", type=int, metavar="N", help="number of processes per machine (default: 1)")
    parser.add_argument("--nodes", type=int, metavar="N", help="number of machines, with torchrun or SLURM (default: 1)")
    parser.add_argument("--accelerator", metavar="KIND", help="hardware: cpu, gpu or auto (default: auto)")
    parser.add_argument(
        "--precision", metavar="KIND", help="number format: 32-true, bf16-mixed or 16-mixed (default: 32-true)"
    )
    parser.add_argument("--workers", type=int, metavar="N", help="number of data-loader processes (default: 0)")
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="folder of the datasets (default: $ANYORDER_DATA)")
    parser.add_argument(
        "--save-every",
        type=float,
        metavar="SECONDS",
        help="interval at which the state is saved within an epoch (default: 600)",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        metavar="N",
        help="time limit: stop after the epoch in which it ends, and test; the same command resumes",
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress bar and no remarks, only the scores")


def machine(args: argparse.Namespace, began: Any = None) -> Any:
    """Where to run, from the arguments of ``add_machine``; what they leave open is as it was where the run began."""
    from anyorder.training.machine import Machine

    names = ("devices", "nodes", "precision", "workers", "accelerator", "data_dir", "save_every", "minutes")
    given = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    return replace(began or Machine(), **given, progress=not args.quiet)
