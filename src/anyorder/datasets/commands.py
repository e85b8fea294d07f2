"""`anyorder data`: list, get, check and find datasets."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

from anyorder.datasets.entries import Dataset
from anyorder.datasets.fetch import fetch
from anyorder.datasets.registry import DATASETS, data_dir, dataset, folder, missing
from anyorder.datasets.verify import check

Handler = Callable[[argparse.Namespace], int]
Subparsers = Any  # argparse._SubParsersAction, which argparse does not export

_WHERE = "Datasets live in --data-dir, else in $ANYORDER_DATA, else in the user's cache folder."


def add_commands(subparsers: Subparsers) -> Subparsers:
    """Add `data` and its commands; returns the place where further ones are added."""
    parser = subparsers.add_parser(
        "data", help="list, download and check datasets", description=f"List, download and check datasets. {_WHERE}"
    )
    commands = parser.add_subparsers(dest="data_command", metavar="COMMAND", required=True)
    listing = add_command(commands, "list", _list, "show every dataset, its size and whether it is here")
    listing.add_argument("--format", choices=("text", "json"), default="text", help="output format (default: text)")
    get = add_command(commands, "get", _get, "download datasets, or print which files to put where")
    _add_names(get)
    get.add_argument("--force", action="store_true", help="replace files that are wrong or cannot be verified")
    get.add_argument("--quiet", action="store_true", help="show no progress bar")
    _add_names(
        add_command(
            commands, "check", _check, "check presence, size and SHA-256 of every file; the exit code is 1 if one is wrong"
        )
    )
    where = add_command(commands, "where", _where, "print the data folder, or the folder of a dataset")
    where.add_argument("name", nargs="?", metavar="NAME", help="name of a dataset, from `anyorder data list`")
    return commands


def add_command(commands: Subparsers, name: str, handler: Handler, summary: str) -> argparse.ArgumentParser:
    """Add one command with its `--data-dir`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
    )
    add_folder(parser, handler)
    return parser


def add_folder(parser: argparse.ArgumentParser, handler: Handler) -> None:
    """What all commands of `data` share: the option `--data-dir` and where datasets live without it."""
    parser.description = f"{parser.description} {_WHERE}"
    parser.add_argument("--data-dir", metavar="DIR", default=None, help="folder of the datasets")
    parser.set_defaults(run=handler)


def _add_names(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="NAME", help="names of datasets, from `anyorder data list`")


def _list(args: argparse.Namespace) -> int:
    states = {name: _state(entry, args.data_dir) for name, entry in DATASETS.items()}
    if args.format == "json":
        print(json.dumps([_as_json(entry, states[name], args.data_dir) for name, entry in DATASETS.items()], indent=2))
        return 0
    width = max(map(len, DATASETS))
    print(f"data folder: {data_dir(args.data_dir)}\n")
    print(f"{'name':<{width}}  {'size':>9}  {'here':<9}  what")
    for name, entry in DATASETS.items():
        print(f"{name:<{width}}  {_size(entry.size, entry.generated):>9}  {states[name]:<9}  {entry.title}")
        print(f"{'':<{width + 24}}{entry.task}; licence: {entry.licence}")
    print("\n`anyorder data get NAME` brings one, `anyorder data list --format json` says more.")
    return 0


def _get(args: argparse.Namespace) -> int:
    for name in args.names:
        dataset(name)  # refuse a wrong name before the first download
    for name in args.names:
        fetch(name, data_dir=args.data_dir, force=args.force, progress=not args.quiet)
    return 0


def _check(args: argparse.Namespace) -> int:
    for name in args.names:
        dataset(name)
    bad = 0
    for name in args.names:
        reports = check(name, data_dir=args.data_dir)
        print(f"{name}: {folder(name, data_dir=args.data_dir)}" if reports else f"{name}: generated, nothing to check")
        for report in reports:
            print(f"  {report.state:<14}  {report.path}  ({report.detail})")
        bad += sum(not report.good for report in reports)
    if bad:
        print(
            f"{bad} file{'s are' if bad > 1 else ' is'} missing or wrong: `anyorder data get NAME` says what to do",
            file=sys.stderr,
        )
    return 1 if bad else 0


def _where(args: argparse.Namespace) -> int:
    print(folder(args.name, data_dir=args.data_dir) if args.name else data_dir(args.data_dir))
    return 0


def _state(entry: Dataset, chosen: str | None) -> str:
    if entry.generated:
        return "generated"
    absent = len(missing(entry.name, data_dir=chosen))
    return "yes" if not absent else "no" if absent == len(entry.files) else f"{len(entry.files) - absent}/{len(entry.files)}"


def _size(size: int | None, generated: bool) -> str:
    if size is None or generated:
        return "-" if generated else "unknown"
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{size / 1e3:.1f} kB"


def _as_json(entry: Dataset, state: str, chosen: str | None) -> dict[str, object]:
    files = [
        {"path": file.path, "url": file.url, "size": file.size, "sha256": file.sha256, "of_content": file.content}
        for file in entry.files
    ]
    facts = ("name", "title", "task", "licence", "source", "citation", "command", "notes", "size", "generated")
    known: dict[str, object] = {fact: getattr(entry, fact) for fact in facts}
    return known | {"here": state, "folder": str(folder(entry.name, data_dir=chosen)), "files": files}
