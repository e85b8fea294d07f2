"""``anyorder list | show | run | resume | table | reproduced | plot | collect``: the experiments of the paper."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from anyorder.training.options import RUNS, add_machine, machine

RESULTS = Path("results")


def add_commands(commands: Any) -> None:
    listing = _add(commands, "list", _list, "show every experiment: the rows of the paper's tables")
    listing.add_argument("table", nargs="?", help="name of a table (default: all)")
    show = _add(commands, "show", _show, "print the resolved configuration of a recipe")
    show.add_argument("recipe", help="name of a recipe, from `anyorder list`")
    _add_scale(show)
    _add_variant(show)
    add_machine(_add_run(commands))
    again = _add(commands, "resume", _resume, "resume an interrupted run, with the result it would have had")
    again.add_argument("folder", type=Path, help="folder of the run")
    add_machine(again)
    table = _add(commands, "table", _table, "print measured values beside the paper's, from records")
    table.add_argument("name", help=_SHOWN)
    table.add_argument(
        "--records", type=Path, default=RESULTS, metavar="DIR", help=f"folder of the records (default: {RESULTS}/)"
    )
    table.add_argument("--format", choices=("text", "markdown", "csv"), default="text", help="output format (default: text)")
    _add_shown_scale(table)
    page = _add(
        commands,
        "reproduced",
        _reproduced,
        "print a page on what was reproduced: a line per table of the paper, from records",
    )
    page.add_argument(
        "--records", type=Path, default=RESULTS, metavar="DIR", help=f"folder of the records (default: {RESULTS}/)"
    )
    plot = _add(commands, "plot", _plot, "draw learning curves from records")
    plot.add_argument("name", help=_SHOWN)
    _add_shown_scale(plot)
    plot.add_argument("--metric", default="loss", help="metric to draw: loss, or one of the evaluations (default: loss)")
    plot.add_argument(
        "--records", type=Path, default=RESULTS, metavar="DIR", help=f"folder of the records (default: {RESULTS}/)"
    )
    plot.add_argument(
        "--output", type=Path, default=Path("curves.png"), metavar="FILE", help="picture (default: curves.png)"
    )
    collect = _add(commands, "collect", _collect, "copy the records of finished runs to the folder that tables read")
    collect.add_argument("runs", type=Path, nargs="?", default=RUNS, help=f"folder of runs (default: {RUNS}/)")
    collect.add_argument(
        "--into", type=Path, default=RESULTS, metavar="DIR", help=f"folder of the records (default: {RESULTS}/)"
    )


_SHOWN = "name of a table, of a dataset of it such as delaunay/50, of a recipe, or a folder of own trainings"


def _add_shown_scale(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scale", choices=("quick", "medium", "full"), help="scale of the runs to show (default: all)")


def _add_run(commands: Any) -> argparse.ArgumentParser:
    run = _add(commands, "run", _run, "train and test a recipe, or all recipes of a table")
    run.add_argument("recipe", help="name of a recipe, from `anyorder list`; with --all, of a table or a dataset of it")
    run.add_argument("--all", action="store_true", help="run every recipe below the name")
    _add_scale(run)
    _add_variant(run)
    run.add_argument("--seeds", type=int, metavar="N", help="number of seeds to run, from --seed on")
    run.add_argument("--out", type=Path, default=RUNS, metavar="DIR", help=f"folder for the runs (default: {RUNS}/)")
    run.add_argument("--force", action="store_true", help="repeat runs that are finished")
    return run


def _add(commands: Any, name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    parser.set_defaults(run=run)
    return parser


def _add_scale(parser: argparse.ArgumentParser) -> None:
    text = (
        "quick fits two CPU cores; medium (Delaunay) takes one to four hours; full is the paper's protocol (default: quick)"
    )
    parser.add_argument("--scale", choices=("quick", "medium", "full"), default="quick", help=text)


def _add_variant(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, default=0, help="random seed of data, initialisation and training (default: 0)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change a setting of the run; may be repeated"
    )


def _list(args: argparse.Namespace) -> int:
    from anyorder.experiments import find_table, recipes_of, table_names

    for name in [args.table] if args.table else table_names():
        print(find_table(name).title)
        recipes = recipes_of(name)
        width = max(map(len, recipes))
        for recipe in recipes.values():
            print(f"  {recipe.name:<{width}}  {recipe.dataset}: {recipe.row}")
        print()
    return 0


def _show(args: argparse.Namespace) -> int:
    from anyorder.experiments import find
    from anyorder.training.config import to_data
    from anyorder.training.jobs import Job

    job = Job.of(find(args.recipe), scale=args.scale, seed=args.seed, overrides=tuple(args.set))
    print(json.dumps(to_data(job.run), indent=2))
    return 0


def _run(args: argparse.Namespace) -> int:
    from anyorder.experiments import below, find
    from anyorder.training.fit import Job
    from anyorder.training.session import run_all

    recipes = [recipe for recipe in below(args.recipe) if args.scale in recipe.scales] if args.all else [find(args.recipe)]
    if not recipes:
        raise ValueError(f"no recipe below {args.recipe!r} has the scale {args.scale!r}")
    if args.seeds is not None and args.seeds < 1:
        raise ValueError(f"--seeds must be at least 1, got {args.seeds}")
    seeds = range(args.seed, args.seed + (args.seeds or 1))
    settings = tuple(args.set)
    jobs = [Job.of(recipe, scale=args.scale, seed=seed, overrides=settings) for seed in seeds for recipe in recipes]
    run_all(jobs, args.out, machine(args), force=args.force)
    return 0


def _resume(args: argparse.Namespace) -> int:
    from anyorder.training.fit import resume
    from anyorder.training.jobs import Job
    from anyorder.training.outcome import conclude, told
    from anyorder.training.records import RECORD, Record
    from anyorder.training.session import summary
    from anyorder.training.tables import OWN

    if not args.folder.is_dir():
        raise FileNotFoundError(f"{args.folder} is not the folder of a run")
    if (args.folder / RECORD).exists() and not Record.read(args.folder / RECORD).unfinished:
        print("this run is finished:")
    job, began = Job.read(args.folder)
    where = machine(args, began)
    record = resume(args.folder, where)
    if job.table == OWN and not getattr(job.run.task, "everything", False):
        outcome = conclude(job.run, args.folder, record, data_dir=where.data_dir)
        print(told(outcome, args.folder, use=f"anyorder predict {args.folder}"))
        return 0
    print(summary(record))
    return 0


def _table(args: argparse.Namespace) -> int:
    from anyorder.training.tables import render

    print(render(*_shown(args), form=args.format, scale=args.scale))
    return 0


def _shown(args: argparse.Namespace) -> tuple[Any, list[Any]]:
    """What a name stands for: a table and its records, or those of a dataset or a recipe alone, or own trainings."""
    from anyorder.experiments import below, find_table
    from anyorder.training.records import read_records

    if Path(args.name).is_dir():
        return _own(Path(args.name))
    name, _, part = args.name.partition("/")
    chosen = {recipe.name for recipe in below(args.name)} if part else None
    table = find_table(name)
    records = [each for each in read_records(args.records, table=table.name) if chosen is None or each.recipe in chosen]
    return table, records


def _own(folder: Path) -> tuple[Any, list[Any]]:
    """The trainings on own data in a folder, as a table: a row for each model and for each cheap answer beside it."""
    from anyorder.training.records import read_records
    from anyorder.training.tables import own_table

    records = read_records(folder, table="own")
    if not records:
        raise ValueError(f"{folder} has no records of own trainings: expected a folder of `anyorder train`")
    return own_table(records, f"Own data in {folder}"), records


def _reproduced(args: argparse.Namespace) -> int:
    from anyorder.experiments import TABLES
    from anyorder.training.records import read_records
    from anyorder.training.reproduced import page

    print(page(TABLES.values(), read_records(args.records)))
    return 0


def _plot(args: argparse.Namespace) -> int:
    from anyorder.training.plots import draw_curves

    table, records = _shown(args)
    records = [record for record in records if args.scale in (None, record.scale)]
    title = f"{args.metric} after each epoch: {re.split(r' [(]|[.] ', table.title)[0]}"
    print(f"drawn in {draw_curves(records, args.metric, args.output, title=title, rows=table.rows)}")
    return 0


def _collect(args: argparse.Namespace) -> int:
    from anyorder.training.records import collect
    from anyorder.training.tune import collect_choices

    copied, left_out = collect(args.runs, args.into)
    searches = collect_choices(args.runs, args.into)
    print(
        f"{copied} records in {args.into}"
        + (f", and {searches} of searches" if searches else "")
        + (f"; {left_out} of changed or own runs left out" if left_out else "")
    )
    return 0
