"""``anyorder draw orders``."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_draw(parser: argparse.ArgumentParser) -> None:
    """``anyorder draw orders``."""
    parser.set_defaults(run=_draw)
    parser.add_argument(
        "--records", type=Path, default=Path("results"), metavar="DIR", help="folder of the records (default: results/)"
    )
    parser.add_argument("--scale", choices=("quick", "full"), default="quick", help="scale of the runs (default: quick)")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("orders.png"),
        metavar="FILE",
        help="picture, .png, .svg or .pdf (default: orders.png)",
    )


def _draw(args: argparse.Namespace) -> int:
    from anyorder.experiments.expressivity.picture import draw_orders
    from anyorder.training.records import read_records

    records = [record for record in read_records(args.records, table="expressivity") if record.scale == args.scale]
    print(f"drawn in {draw_orders(records, args.output)}")
    return 0
