"""``anyorder train | predict``: people's own data."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from anyorder.cli import hyperedges, hypergraphs, molecules, set_to_graph


def add_commands(commands: Any) -> None:
    predict = commands.add_parser(
        "predict", help="apply a trained model to new data", description="Apply a trained model to new data."
    )
    predict.add_argument("folder", type=Path, help="folder of a run or of `anyorder train`")
    predict.add_argument("--input", type=Path, metavar="FILE", help="data in the form the model was trained on")
    predict.add_argument("--output", type=Path, metavar="FILE", help="where the predictions go (default: beside the input)")
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


def _predict(args: argparse.Namespace) -> int:
    from anyorder.training.checkpoints import load_model, load_run
    from anyorder.training.run import PredictRequest

    run, model = load_model(args.folder)
    known = {"folder", "input", "output", "command", "run", "traceback"}
    options = {key: str(value) for key, value in vars(args).items() if key not in known and value is not None}
    request = PredictRequest(args.folder, args.input, args.output, options)
    print(run.task.predict(model, load_run(args.folder)[1], request))
    return 0
