"""``anyorder train molecules`` and ``anyorder explain``: properties of molecules from SMILES."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from anyorder.errors import printable
from anyorder.training.own import (
    add_data,
    add_options,
    add_shares,
    count,
    describe,
    model_folder,
    take_data,
    tell,
    train,
)

MODELS = ("ours", "transformer", "mlp_pi", "gin", "gcn", "gin-vn", "gcn-vn", "fingerprint")
EXAMPLE = """examples:
  anyorder train molecules --data my.csv --smiles smiles --target gap
  anyorder train molecules --data tox.csv --target NR-AR SR-p53 --goal classification --keep-missing
  anyorder predict runs/molecules/my-ours --input new.csv
"""


def add_predict(parser: argparse.ArgumentParser) -> None:
    """What ``predict`` takes for these models."""
    parser.add_argument("--smiles", metavar="COLUMN", help="molecules: column of the SMILES (default: as in training)")


def add_train(parser: argparse.ArgumentParser) -> None:
    """``anyorder train molecules``."""
    describe(parser, epilog=EXAMPLE)
    parser.set_defaults(run=_train)
    add_data(parser, "table of molecules (CSV, plain or gzip) with a header")
    parser.add_argument("--data", type=Path, metavar="CSV", help="the same, as an option")
    parser.add_argument("--smiles", metavar="COLUMN", help="column of the SMILES (default: the one that is called so)")
    parser.add_argument(
        "--target", nargs="+", metavar="COLUMN", help="columns to predict (default: the only other one that may be)"
    )
    goals = ("regression", "classification")
    parser.add_argument("--goal", choices=goals, help="kind of targets (default: as their values suggest)")
    parser.add_argument(
        "--keep-missing", action="store_true", help="keep rows with empty targets; an empty target does not count"
    )
    parser.add_argument(
        "--max-atoms", type=count, metavar="N", help="size limit: larger molecules are left out and reported"
    )
    add_shares(parser, "rows")
    text = "answer with the network alone (default: with a forest beside it, as far as validation prefers that)"
    parser.add_argument("--alone", action="store_true", help=text)
    parser.add_argument("--model", choices=MODELS, default="ours", help="model (default: ours)")
    parser.add_argument("--channels", type=count, metavar="N", help="width of the model (default: after the number of rows)")
    parser.add_argument("--layers", type=count, metavar="N", help="number of layers (default: after the number of rows)")
    parser.add_argument("--dropout", type=float, default=0.1, metavar="SHARE", help="dropout (default: 0.1)")
    add_options(parser, "molecules", epochs=100, items="molecules", batch_size=32)


def add_explain(parser: argparse.ArgumentParser) -> None:
    """What ``explain`` takes for these models."""
    parser.add_argument("--smiles", help="molecules: the molecule as SMILES")
    text = "molecules: number of the atom that attends, from 0 (default: the mean over atoms)"
    parser.add_argument("--atom", type=int, metavar="N", help=text)


def _take(args: argparse.Namespace) -> None:
    """The table and its columns; those that are not named are found by their names, and said."""
    from anyorder.experiments.molecules.seen import guessed_goal, smiles_column, target_column
    from anyorder.peek import look

    take_data(args, "data")
    seen, said = look(args.data), []
    if args.smiles is None:
        args.smiles = smiles_column(seen.names) or "smiles"
        said += [f"SMILES: column {args.smiles!r} (--smiles)"] if args.smiles != "smiles" else []
    if not args.target:
        args.target = [target_column(seen, args.smiles)]
        said.append(f"asked: {args.target[0]!r} (--target)")
    if args.goal is None:
        args.goal = guessed_goal(seen, args.target)
        said += ["goal: classification, from the values (--goal)"] if args.goal == "classification" else []
    tell(said, args)


def _train(args: argparse.Namespace) -> int:
    _take(args)
    from anyorder.experiments.molecules.fitting import MoleculeFit, own_run
    from anyorder.experiments.molecules.task import OwnMolecules

    stem = args.data.name.removesuffix(".gz").removesuffix(".csv")
    folder = model_folder(args, "molecules", stem)
    task = OwnMolecules(
        data=str(args.data.resolve()),
        smiles=args.smiles,
        targets=tuple(args.target),
        goal=args.goal,
        keep_missing=args.keep_missing,
        max_atoms=args.max_atoms,
        valid=args.valid,
        test=args.test,
        alone=args.alone,
    )
    names = ("model", "layers", "channels", "dropout", "learning_rate", "batch_size", "epochs", "patience")
    fit = MoleculeFit(**{name: getattr(args, name) for name in names})
    run = own_run(task, fit, rows=_report(task, args), seed=args.seed)
    use = f"anyorder predict {folder} --input FILE  (a table with the same column of SMILES)"
    return train(run, args, folder, kind="molecules", data=args.data.name, use=use)


def _report(task: Any, args: argparse.Namespace) -> int:
    """Make the store of the table first, and say what is left out; how many molecules train."""
    opened = task.open(args.data_dir, seed=args.seed, progress=not args.quiet)
    bad = opened.store.manifest.unreadable
    if bad:
        lines = [f"{len(bad)} rows give no molecule and are left out:"]
        lines += [f"  row {each.row}: {each.smiles!r}: {each.reason}" for each in bad[:10]]
        lines += [f"  and {len(bad) - 10} more, in {opened.store.path / 'manifest.json'}"] if len(bad) > 10 else []
        print(printable("\n".join(lines)))  # also where the user wants quiet: these rows are lost otherwise
    return len(opened.split["train"])
