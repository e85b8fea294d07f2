"""``anyorder classes``: the basis of an equivariant layer, to read and to look at."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from anyorder.algebra import KINDS, EquivalenceClass, Program, attention_program, formula, linear_program, meaning, select
from anyorder.algebra.selections import CRITERIA
from anyorder.errors import InputError

MANY = 1_000


def add_commands(commands: Any) -> None:
    parser = commands.add_parser(
        "classes",
        help="show the equivalence classes of a layer",
        description="Show the equivalence classes of L_{k->l}: one weight matrix each (Eq. 1 of the paper).",
    )
    parser.add_argument("order_in", type=int, metavar="K", help="input order: 1 sets, 2 graphs, 3 and up hypergraphs")
    parser.add_argument("order_out", type=int, metavar="L", help="output order; 0 is one vector for the graph")
    listed = "; ".join(f"{name!r}: {criterion.meaning}" for name, criterion in CRITERIA.items())
    parser.add_argument(
        "--selection",
        "--select",
        default="all",
        metavar="NAMES",
        help=f"which classes; names with commas between must all hold: {listed} (default: all)",
    )
    parser.add_argument("--all", action="store_true", help=f"list more than {MANY:,} classes, too")
    parser.add_argument(
        "--program",
        nargs="?",
        const="relaxed",
        choices=("linear", "mean", "softmax", "relaxed", "exact"),
        help="print the steps of a layer with these classes: linear (sums or means), or attention (default: relaxed)",
    )
    parser.add_argument("--draw", type=Path, metavar="FILE", help="draw each class into a PNG, SVG or PDF file")
    parser.add_argument(
        "--draw-attention",
        type=Path,
        metavar="FILE",
        help="draw which queries and keys each class compares on three nodes, and where coefficients go (orders up to 2)",
    )
    parser.set_defaults(run=show_classes)


def _check_few(count: int, args: argparse.Namespace) -> None:
    if count > MANY:
        raise InputError(
            f"L_{{{args.order_in}->{args.order_out}}} has {count:,} classes, a line each: --all lists them, --selection some"
        )


def bell(order: int) -> int:
    """The number of partitions of a set, by the triangle of Bell.

    >>> [bell(order) for order in range(6)]
    [1, 1, 2, 5, 15, 52]
    """
    row = [1]
    for _ in range(order):
        below = [row[-1]]
        for number in row:
            below.append(below[-1] + number)
        row = below
    return row[0]


def _program(args: argparse.Namespace, chosen: tuple[EquivalenceClass, ...]) -> Program:
    if args.program in ("linear", "mean"):
        return linear_program(args.order_in, args.order_out, chosen, "sum" if args.program == "linear" else "mean")
    attention = "softmax" if args.order_out == 0 else args.program
    same = args.order_in == args.order_out
    return attention_program(args.order_in, args.order_out, chosen, (attention, attention), same)


def show_classes(args: argparse.Namespace) -> int:
    if args.order_in < 0 or args.order_out < 0:
        raise ValueError(f"orders must be at least 0, got {args.order_in} and {args.order_out}")
    if args.selection == "all" and not args.all:
        _check_few(bell(args.order_in + args.order_out), args)
    chosen = sorted(select(args.order_in, args.order_out, args.selection), key=lambda cls: KINDS.index(cls.kind))
    if not args.all:
        _check_few(len(chosen), args)
    if args.program:
        print(_program(args, select(args.order_in, args.order_out, args.selection)))
        return 0
    rows = [(cls.kind, cls.name, str(cls), formula(cls), meaning(cls)) for cls in chosen]
    lines = [("kind", "name", "class", "formula", "meaning"), *rows]
    widths = [max(len(line[n]) for line in lines) for n in range(5)]
    for number, line in enumerate(lines):
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))
    counts = {kind: sum(row[0] == kind for row in rows) for kind in KINDS}
    print(f"\n{len(rows)} classes: " + ", ".join(f"{count} {kind}" for kind, count in counts.items()))
    if args.draw is not None:
        from anyorder.algebra.draw import draw_classes

        print(f"drawn in {draw_classes(chosen, args.draw)}")
    if args.draw_attention is not None:
        from anyorder.algebra.draw_attention import draw_attention

        print(f"drawn in {draw_attention(chosen, args.draw_attention)}")
    return 0
