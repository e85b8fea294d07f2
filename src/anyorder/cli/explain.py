"""``anyorder explain``: where a trained model looks."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from anyorder.cli.domains import add_explain_options
from anyorder.cli.lazy import sentence
from anyorder.errors import printable

ENDINGS = (".png", ".svg", ".pdf")
_COMMON = ("folder", "layer", "cls", "output", "command", "run", "traceback")


def add_commands(commands: Any) -> None:
    """Add ``explain``."""
    text = "draw a graph or a molecule with the attention of a trained model"
    commands.add_parser("explain", help=text, description=sentence(text), fill=_add_options)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_explain)
    parser.add_argument("folder", type=Path, help="folder of a run or of `anyorder train`")
    name = "class, named as in `anyorder classes 2 2`: '(j,j) -> (i,i)' (default: all)"
    parser.add_argument("--class", dest="cls", metavar="NAME", help=name)
    parser.add_argument("--layer", type=int, metavar="N", help="number of a layer, from 1 (default: the last)")
    picture = f"picture, {', '.join(ENDINGS)} (default: attention.svg)"
    parser.add_argument("--output", type=Path, default=Path("attention.svg"), metavar="FILE", help=picture)
    add_explain_options(parser)


def _explain(args: argparse.Namespace) -> int:
    if args.output.suffix.lower() not in ENDINGS:
        raise ValueError(f"a picture is a {', '.join(ENDINGS)} file, got {args.output.name!r}")
    from anyorder.training.checkpoints import load_model, load_run
    from anyorder.training.run import ExplainRequest

    run, model = load_model(args.folder)
    options = {key: str(value) for key, value in vars(args).items() if key not in _COMMON and value is not None}
    for name in options.keys() - {*run.task.explain_options}:
        taken = ", ".join(f"--{option}" for option in ("layer", "class", "output", *run.task.explain_options))
        raise ValueError(f"--{name} is not for this model: {type(run.task).__name__} takes {taken}")
    request = ExplainRequest(args.folder, args.output, args.layer, args.cls, options)
    print(printable(run.task.explain(run, model, load_run(args.folder)[1], request)))
    return 0
