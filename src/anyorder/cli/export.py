"""``anyorder export``: a trained model for other programs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from anyorder.cli.lazy import sentence


def add_commands(commands: Any) -> None:
    """Add ``export``."""
    text = "write a trained model for a web page, or as a program that needs only PyTorch"
    parser = commands.add_parser("export", help=text, description=sentence(text))
    parser.add_argument("folder", type=Path, help="folder of a run or of `anyorder train`, or a shipped model: delaunay")
    parser.add_argument(
        "--format",
        choices=("web", "pt2", "aoti"),
        default="web",
        help="kind of file: web, a script; pt2, a program of torch.export; aoti, one compiled for this CPU (default: web)",
    )
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="file to write: model.js or model.pt2")
    parser.add_argument("--name", help="name of the model in the page (default: that of the folder)")
    parser.set_defaults(run=_export)


def _export(args: argparse.Namespace) -> int:
    from anyorder.training.checkpoints import shipped

    folder = shipped(str(args.folder)) or args.folder
    if args.format == "web":
        from anyorder.training.web import export_web

        size = export_web(folder, args.output, args.name)
    else:
        from anyorder.training.program import export_program

        size = export_program(folder, args.output, compiled=args.format == "aoti")
    print(f"{args.output}: {size / 1e6:.1f} MB")
    return 0
