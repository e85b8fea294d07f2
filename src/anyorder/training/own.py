"""What all commands ``anyorder train`` share: options, the folder of a model, and training into it."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from anyorder.errors import printable
from anyorder.training.options import RUNS, add_machine, machine

CHOOSING = "choosing"
"""The folder in which the epoch was chosen, where no rows are kept for a test."""


def count(text: str) -> int:
    """A whole number of at least 1, from the command line."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text!r}")
    return int(text)


class _Fixed(argparse.Action):
    """Remembers that the user has said how long to train."""

    def __call__(
        self, parser: argparse.ArgumentParser, args: argparse.Namespace, values: Any, option_string: str | None = None
    ) -> None:
        setattr(args, self.dest, values)
        args.fixed = True


def describe(parser: argparse.ArgumentParser, more: str = "", epilog: str = "") -> None:
    """Say more below the help line of a command; ``epilog`` keeps its lines."""
    parser.description = f"{parser.description} {more}".rstrip()
    if epilog:
        parser.epilog, parser.formatter_class = epilog, argparse.RawDescriptionHelpFormatter


def add_data(parser: argparse.ArgumentParser, text: str) -> None:
    """The data as the first argument, beside the options that name them."""
    parser.add_argument("given", nargs="?", type=Path, metavar="DATA", help=text)


def take_data(args: argparse.Namespace, option: str, *others: str) -> None:
    """Put the first argument to the option that it stands for; the data are named once, and have to be."""
    names = tuple(dict.fromkeys((option, *others)))
    named = [name for name in names if getattr(args, name) is not None]
    if args.given is not None and named:
        raise ValueError(f"the data are named twice: {args.given} and --{named[0]} {getattr(args, named[0])}")
    if args.given is None and not named:
        words = " or ".join(f"--{name}" for name in names)
        raise ValueError(f"name the data: anyorder train {args.kind} DATA, or {words}")
    if args.given is not None:
        setattr(args, option, args.given)


def add_options(
    parser: argparse.ArgumentParser,
    kind: str,
    *,
    epochs: int,
    items: str = "",
    batch_size: int = 0,
    patience: int | None = None,
) -> None:
    """How long, from where and where to; batches of ``items`` where the data are many."""
    text = f"largest number of epochs (default: as many as fit a few minutes, at most {epochs})"
    parser.add_argument("--epochs", type=count, default=epochs, action=_Fixed, metavar="N", help=text)
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and end")
    parser.set_defaults(fixed=False)
    if batch_size:
        text = f"number of {items} per step (default: {batch_size})"
        parser.add_argument("--batch-size", type=count, default=batch_size, metavar="N", help=text)
        parser.add_argument(
            "--learning-rate", type=float, default=1e-3, metavar="RATE", help="learning rate (default: 1e-3)"
        )
        text = f"number of epochs without gain on validation before it stops (default: {patience or 'unlimited'})"
        parser.add_argument("--patience", type=count, default=patience, metavar="N", help=text)
    parser.add_argument(
        "--seed", type=int, default=0, help="random seed of the split, initialisation and training (default: 0)"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change a setting of the run; may be repeated"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help=f"folder for the model (default: {RUNS}/{kind}/DATA-MODEL)")
    add_machine(parser)


def add_size(parser: argparse.ArgumentParser, *, layers: str, dropout: float, of: str = "") -> None:
    """Width, depth and dropout of a model."""
    parser.add_argument("--channels", type=count, default=64, metavar="N", help="width of the model (default: 64)")
    parser.add_argument("--layers", type=count, default=4, metavar="N", help=f"number of {layers} (default: 4)")
    text = f"dropout{of} (default: {dropout:g})"
    parser.add_argument("--dropout", type=float, default=dropout, metavar="SHARE", help=text)


def add_shares(
    parser: argparse.ArgumentParser, items: str, rest: str = "", *, valid: float = 0.1, test: float = 0.1
) -> None:
    """How much of the data is held back; validation may take its share of the ``rest``."""
    text = f"share of {rest or items} for validation (default: {valid})"
    parser.add_argument("--valid", type=float, default=valid, metavar="SHARE", help=text)
    text = f"share of {items} for the test; with 0 all are trained on once the epoch is chosen (default: {test})"
    parser.add_argument("--test", type=float, default=test, metavar="SHARE", help=text)
    text = "number of folds: as many trainings, each tests on another part; mean and deviation at the end"
    parser.add_argument("--folds", type=count, default=0, metavar="N", help=text)


def model_folder(args: argparse.Namespace, kind: str, stem: str) -> Path:
    """The folder for the model; refuses one that holds a finished model."""
    from anyorder.training.records import RECORD, Record
    from anyorder.training.run import slug

    name = f"{slug(stem)}-{args.model}"
    folder: Path = args.out or RUNS / kind / (name if args.seed == 0 else f"{name}-seed-{args.seed}")
    if (folder / RECORD).exists() and not Record.read(folder / RECORD).unfinished:
        raise ValueError(f"{folder} holds a trained model already: use another folder with --out")
    return folder


def tell(lines: Sequence[str], args: argparse.Namespace) -> None:
    """Print lines, unless the user wants quiet."""
    if lines and not args.quiet:
        print(printable("\n".join(lines)))


def prepared(run: Any, args: argparse.Namespace, folder: Path) -> Any:
    """The run with the changes of ``--set`` and epochs that fit the time; what it will do is said."""
    from anyorder.training.config import override
    from anyorder.training.sizing import fit_epochs, sized

    for setting in args.set:
        run = override(run, setting)
    splits = run.task.load(seed=run.seed, data_dir=args.data_dir)
    tell(run.task.describe(splits), args)
    seconds = 0.0
    fixed = args.fixed or any(setting.startswith("schedule.epochs") for setting in args.set)
    if args.dry_run or not fixed:
        sooner, seconds = fit_epochs(run, splits, folder)
        run = run if fixed else sooner
    tell(sized(run, splits, seconds), args)
    return run


def train(run: Any, args: argparse.Namespace, folder: Path, *, kind: str, data: str, use: str) -> int:
    """Say what a run will do, carry it out, and show both rows; ``use`` is what the model is good for."""
    run = prepared(with_folds(run, args), args, folder)
    if args.dry_run:
        tell(["nothing was trained: leave --dry-run out to begin"], args)
        return 0
    from anyorder.training.outcome import told

    job = {"recipe": f"own/{kind}", "table": "own", "dataset": data, "row": args.model, "overrides": tuple(args.set)}
    if args.folds:
        return each_fold(run, args, folder, job)
    outcome, part = fitted(run, folder, machine(args), job)
    print(told(outcome, folder, part=part, use=use, hint="more rows, --epochs or --set may help, or use that"))
    return 0


def with_folds(run: Any, args: argparse.Namespace) -> Any:
    """The run on the first of the folds, if there are any."""
    check_folds(args)
    return replace(run, task=replace(run.task, folds=args.folds)) if args.folds else run


def check_folds(args: argparse.Namespace) -> None:
    """Refuse folds together with parts that are given otherwise."""
    if args.folds and args.test == 0:
        raise ValueError("--folds tests on every part in turn and --test 0 on none: take one of them")
    given = [name for name in ("split", "valid_data", "test_data") if getattr(args, name, None)]
    if args.folds and given:
        raise ValueError(f"--folds cuts parts, and --{given[0].replace('_', '-')} names them: take one of them")


def each_fold(run: Any, args: argparse.Namespace, folder: Path, job: dict[str, Any]) -> int:
    """Each fold by itself, in a folder of its own, then mean and deviation."""
    from anyorder.training.outcome import mean_rows
    from anyorder.training.scores import score_table

    outcomes: list[Any] = []
    for fold in range(args.folds):
        one = replace(run, task=replace(run.task, fold=fold))
        outcomes.append(fitted(one, folder / f"fold-{fold}", machine(args), job)[0])
        firsts = [(title, scores[0]) for title, scores in outcomes[-1].rows]
        tell([f"fold {fold}: " + ", ".join(f"{title} {score.name} {score.value:.4g}" for title, score in firsts)], args)
    mean = mean_rows(outcomes)
    print(score_table(mean.rows, spread="deviation"))
    if mean.ahead:
        print(f"warning: on average the model does not beat {mean.ahead}")
    print("next: the same command without --folds makes a model to predict with")
    return 0


def fitted(run: Any, folder: Path, where: Any, job: dict[str, Any]) -> tuple[Any, str]:
    """Train and score, and name the part that is scored.

    Without a test part the epoch is chosen first, in a folder of its own, and the model is trained anew on all rows.
    """
    from anyorder.training.fit import Job, carry_out
    from anyorder.training.outcome import TRAINED, chosen_epochs, conclude
    from anyorder.training.records import write_record

    if not run.task.without_test:
        record = carry_out(Job(run=run, **job), folder, where, then=TRAINED)
        return conclude(run, folder, record, data_dir=where.data_dir), "test"
    choosing = folder / CHOOSING
    record = carry_out(Job(run=run, **job), choosing, where, then=TRAINED)
    outcome = conclude(run, choosing, record, data_dir=where.data_dir)
    schedule = replace(run.schedule, epochs=chosen_epochs(run, outcome.record), patience=None)
    last = replace(run, task=replace(run.task, everything=True), schedule=schedule)
    record = carry_out(Job(run=last, **job), folder, where, then=TRAINED)
    for name in run.task.kept_files:  # what stands beside the model has seen all rows already
        if (choosing / name).exists():
            shutil.copyfile(choosing / name, folder / name)
    left = "" if record.unfinished == TRAINED else record.unfinished
    record = replace(record, metrics={"validation": outcome.record.metrics[""]}, unfinished=left)
    write_record(folder, record)
    return replace(outcome, record=record), "validation"
