"""``anyorder train | predict``: people's own data."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from anyorder.experiments.hyperedges import commands as hyperedges
from anyorder.experiments.hypergraphs import commands as hypergraphs
from anyorder.experiments.molecules import commands as molecules
from anyorder.experiments.set_to_graph import commands as set_to_graph


def add_commands(commands: Any) -> None:
    predict = commands.add_parser(
        "predict", help="apply a trained model to new data", description="Apply a trained model to new data."
    )
    predict.add_argument("folder", type=Path, help="folder of a run or of `anyorder train`")
    predict.add_argument("--input", type=Path, metavar="FILE", help="data in the form the model was trained on")
    predict.add_argument("--output", type=Path, metavar="FILE", help="where the predictions go (default: beside the input)")
    where = "folder of the datasets, for models of published ones (default: as in training)"
    predict.add_argument("--data-dir", type=Path, metavar="DIR", help=where)
    predict.set_defaults(run=_predict)
    text = "train a model on your own data"
    train = commands.add_parser("train", help=text, description=f"{text.capitalize()}.")
    add_train(train.add_subparsers(dest="kind", metavar="KIND", required=True), predict)
    molecules.add_explain(commands)
    set_to_graph.add_draw(commands)


def add_train(kinds: Any, predict: argparse.ArgumentParser) -> None:
    """Each task adds its kind of training, and what ``predict`` takes besides, here."""
    hypergraphs.add_train(kinds, predict)
    molecules.add_train(kinds, predict)
    hyperedges.add_train(kinds, predict)
    set_to_graph.add_train(kinds, predict)


def _check_output(args: argparse.Namespace) -> None:
    """Predictions never take the place of what they are made from."""
    output = args.output.resolve()
    for given in (args.input, getattr(args, "candidates", None), getattr(args, "features", None)):
        if given is not None and given.resolve() == output:
            raise ValueError(f"{args.output} is the input: name another file for the predictions")
    from anyorder.training.checkpoints import CONFIG, LAST, WEIGHTS
    from anyorder.training.jobs import JOB
    from anyorder.training.records import RECORD

    if output.parent == args.folder.resolve() and output.name in (WEIGHTS, CONFIG, JOB, RECORD, LAST):
        raise ValueError(f"{args.output} belongs to the model: name another file for the predictions")


def _predict(args: argparse.Namespace) -> int:
    from anyorder.training.checkpoints import load_model, load_run
    from anyorder.training.jobs import JOB, Job
    from anyorder.training.run import PredictRequest

    run, model = load_model(args.folder)
    known = {"folder", "input", "output", "data_dir", "command", "run", "traceback"}
    options = {key: str(value) for key, value in vars(args).items() if key not in known and value is not None}
    for name in options.keys() - {*run.task.predict_options}:
        taken = ", ".join(f"--{option}" for option in ("input", "output", *run.task.predict_options))
        raise ValueError(f"--{name} is not for this model: {type(run.task).__name__} takes {taken}")
    data_dir = args.data_dir or (Job.read(args.folder)[1].data_dir if (args.folder / JOB).exists() else None)
    if args.output is not None:
        _check_output(args)
    request = PredictRequest(args.folder, args.input, args.output, options, data_dir)
    print(run.task.predict(model, load_run(args.folder)[1], request))
    return 0
