"""``anyorder tune``: a small search over the settings of a recipe, by validation alone."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from anyorder.training.options import RUNS, add_machine, machine
from anyorder.training.own import count

_TEXT = "search settings of a recipe by validation alone"
_MORE = """The first trial is the recipe as it is, the others are points of the grid, at random but the same for everyone:
rows that are tuned with the same options have the same budget. Test sets are never looked at. The record of the search,
tuning.json, names every trial, its value on every seed, and the choice; `anyorder run RECIPE --set ...` reports it."""
SPACE = {
    "optimiser.learning_rate": ("0.001", "0.003", "0.01"),
    "optimiser.weight_decay": ("0.0", "0.0005", "0.005"),
    "model.dropout": ("0.3", "0.5", "0.7"),
}


def add_commands(commands: Any) -> None:
    parser = commands.add_parser("tune", help=_TEXT, description=f"{_TEXT.capitalize()}. {_MORE}")
    parser.add_argument("recipe", help="a name of `anyorder list`; with --all, a table or a dataset of it")
    parser.add_argument("--all", action="store_true", help="every recipe below the name")
    parser.add_argument(
        "--try",
        dest="space",
        action="append",
        default=[],
        metavar="KEY=A,B,C",
        help=f"setting and values to try, any number of times (default: {', '.join(SPACE)})",
    )
    parser.add_argument("--trials", type=count, default=6, metavar="N", help="number of settings to try (default: 6)")
    parser.add_argument(
        "--seed", type=int, default=100, metavar="N", help="first seed (default: 100, which no table reports)"
    )
    parser.add_argument("--seeds", type=count, default=1, metavar="N", help="number of seeds per trial (default: 1)")
    parser.add_argument(
        "--scale", choices=("quick", "medium", "full"), default="quick", help="scale of the runs (default: quick)"
    )
    parser.add_argument(
        "--out", type=Path, default=RUNS / "tune", metavar="DIR", help=f"folder for the runs (default: {RUNS / 'tune'}/)"
    )
    add_machine(parser)
    parser.set_defaults(run=_tune)


def _tune(args: argparse.Namespace) -> int:
    from anyorder.experiments import below, find
    from anyorder.training.fit import execute
    from anyorder.training.tune import TUNING, tune

    space = dict(map(_values, args.space)) or SPACE
    where, seeds = machine(args), range(args.seed, args.seed + args.seeds)
    for recipe in below(args.recipe) if args.all else [find(args.recipe)]:
        print(recipe.name)
        found = tune(
            recipe,
            scale=args.scale,
            space=space,
            trials=args.trials,
            seeds=seeds,
            execute=lambda job: execute(job, args.out, where),
        )
        path = args.out / recipe.name / args.scale / TUNING
        found.write(path)
        chosen = " ".join(f"--set {setting}" for setting in found.chosen.overrides)
        print(f"chosen: {chosen or 'as it is'}; the search is in {path}")
    return 0


def _values(text: str) -> tuple[str, tuple[str, ...]]:
    key, separator, values = text.partition("=")
    found = tuple(value.strip() for value in values.split(",") if value.strip())
    if not separator or not key.strip() or not found:
        raise ValueError(f"--try takes a setting and values, such as model.dropout=0.3,0.5: got {text!r}")
    return key.strip(), found
