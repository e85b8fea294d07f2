"""``anyorder predict``: a trained model on new data."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from anyorder.cli.domains import add_predict_options
from anyorder.cli.lazy import sentence
from anyorder.errors import printable
from anyorder.files import check_unprotected, protecting

_COMMON = ("folder", "input", "output", "data_dir", "command", "run", "traceback")


def add_commands(commands: Any) -> None:
    """Add ``predict``."""
    text = "apply a trained model to new data"
    commands.add_parser("predict", help=text, description=sentence(text), fill=_add_options)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="folder of a run or of `anyorder train`")
    parser.add_argument("--input", type=Path, metavar="FILE", help="data, in the format of the training data")
    parser.add_argument("--output", type=Path, metavar="FILE", help="file for the predictions (default: beside the input)")
    where = "folder of the datasets, for models of published ones (default: as in training)"
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help=where)
    parser.set_defaults(run=_predict)
    add_predict_options(parser)


def _sources(args: argparse.Namespace, run: Any) -> list[Path]:
    """Files whose place predictions never take: what was given, what the model was trained on, and the model itself."""
    from anyorder.saving import CONFIG
    from anyorder.training.checkpoints import LAST
    from anyorder.training.config import to_data
    from anyorder.training.jobs import JOB
    from anyorder.training.records import RECORD
    from anyorder.weights import WEIGHTS

    given = [value for name, value in vars(args).items() if name not in ("output", "folder") and isinstance(value, Path)]
    trained_on = [Path(value) for value in to_data(run.task).values() if isinstance(value, str) and os.path.isabs(value)]
    return [*given, *trained_on, *(args.folder / name for name in (WEIGHTS, CONFIG, JOB, RECORD, LAST))]


def _predict(args: argparse.Namespace) -> int:
    from anyorder.training.checkpoints import load_model, load_run
    from anyorder.training.jobs import JOB, Job
    from anyorder.training.run import PredictRequest

    run, model = load_model(args.folder)
    options = {key: str(value) for key, value in vars(args).items() if key not in _COMMON and value is not None}
    for name in options.keys() - {*run.task.predict_options}:
        taken = ", ".join(f"--{option}" for option in ("input", "output", *run.task.predict_options))
        raise ValueError(f"--{name} is not for this model: {type(run.task).__name__} takes {taken}")
    data_dir = args.data_dir or (Job.read(args.folder)[1].data_dir if (args.folder / JOB).exists() else None)
    request = PredictRequest(args.folder, args.input, args.output, options, data_dir)
    with protecting(_sources(args, run)):
        if args.output is not None:
            check_unprotected(args.output)
        print(printable(run.task.predict(model, load_run(args.folder)[1], request)))
    return 0
