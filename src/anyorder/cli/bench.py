"""``anyorder bench scaling | layer``: time and memory, measured on this machine."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from anyorder.algebra import LIGHTWEIGHT, PROJECTING, SHARINGS
from anyorder.algebra.selections import CRITERIA

_SCALING = """Time and memory of a forward pass and a training step against the number of edges, on Barabasi-Albert graphs
with 5 links per new node: the runtime figure of the paper. Each model and size runs in a process of its own; a model that
runs out of memory or time is not tried on larger graphs. DIR gets scaling.csv and scaling.png; the same command resumes
where it stopped."""
_TEXT = "Measure time and memory on this machine."
_LAYER = """Time a 2->2 encoder layer with kernel attention beside the matrix products in it, which are timed alone on the
same shapes. The products inside its attention operator, which never appear as such, are timed apart."""


def add_commands(commands: Any) -> None:
    bench = commands.add_parser("bench", help="measure time and memory on this machine", description=_TEXT)
    kinds = bench.add_subparsers(dest="kind", metavar="KIND", required=True)
    _add_scaling(kinds)
    _add_layer(kinds)


def _add_scaling(kinds: Any) -> None:
    parser = kinds.add_parser(
        "scaling", help="time and memory against the number of edges, for all models", description=_SCALING
    )
    parser.add_argument(
        "--sizes", type=int, nargs="+", metavar="EDGES", help="numbers of directed edges (default: 100 to 1,000,000)"
    )
    parser.add_argument("--models", nargs="+", metavar="NAME", help="models, such as 'Ours (S, phi)' GCN (default: all)")
    parser.add_argument(
        "--seeds", type=int, default=3, metavar="N", help="number of graphs per size (default: 3; the paper: 10)"
    )
    parser.add_argument(
        "--memory-limit", type=float, default=8, metavar="GB", help="memory limit per model and size (default: 8)"
    )
    parser.add_argument(
        "--time-limit", type=float, default=300, metavar="S", help="time limit of each of two processes (default: 300)"
    )
    parser.add_argument("--no-step", action="store_true", help="measure forward passes only")
    _add_clock(parser)
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("runs/scaling"),
        metavar="DIR",
        help="folder for the results (default: runs/scaling)",
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress bar")
    parser.set_defaults(run=_scaling)


def _add_layer(kinds: Any) -> None:
    parser = kinds.add_parser("layer", help="an encoder layer beside its own matrix products", description=_LAYER)
    parser.add_argument("--channels", type=int, default=32, metavar="C", help="width of the layer (default: 32)")
    parser.add_argument("--edges", type=int, default=10_000, metavar="E", help="number of directed edges (default: 10000)")
    parser.add_argument("--heads", type=int, default=4, metavar="H", help="number of heads (default: 4)")
    parser.add_argument("--head-channels", type=int, default=8, metavar="D", help="width of a head (default: 8)")
    parser.add_argument(
        "--coupling", choices=("relaxed", "exact"), default="relaxed", help="coupling of keys and queries (default: relaxed)"
    )
    text = f"classes of attention: {', '.join(map(repr, CRITERIA))}, or several with commas between (default: all)"
    parser.add_argument("--classes", default="all", metavar="WHICH", help=text)
    text = "weights that classes have in common: none, keys, queries, 'keys and queries' (default: none)"
    parser.add_argument("--sharing", choices=SHARINGS, default="none", metavar="WHAT", help=text)
    text = "classes that make queries and keys: pointwise, or 'pointwise, in place' (default: pointwise)"
    parser.add_argument("--projection-classes", choices=PROJECTING, default="pointwise", metavar="WHAT", help=text)
    parser.add_argument("--output-rank", type=int, metavar="R", help="rank of the output matrices (default: whole)")
    text = (
        "classes of the MLP: pointwise, 'pointwise, aligned' (no edge reads its reversal), 'pointwise, in place' (each "
        "entry by itself); ', then in place' after the first two is for the second map (default: pointwise)"
    )
    parser.add_argument("--mlp-classes", choices=LIGHTWEIGHT, default="pointwise", metavar="WHAT", help=text)
    text = "leave the pointwise part out of attention (default: it has one)"
    parser.add_argument("--no-direct", dest="direct", action="store_false", help=text)
    text = "width inside the MLP (default: that of the layer)"
    parser.add_argument("--channels-hidden", type=int, metavar="C", help=text)
    parser.add_argument("--step", action="store_true", help="measure forward and backward passes, too")
    _add_clock(parser)
    parser.set_defaults(run=_layer)


def _add_clock(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="number of threads per process (default: 1)")
    text = "clock: wall, or cpu, which other work on the machine does not stretch (default: cpu)"
    parser.add_argument("--clock", choices=("wall", "cpu"), default="cpu", help=text)


def _check(args: argparse.Namespace, *names: str) -> None:
    for name in names:
        value = getattr(args, name)
        if value is not None and value <= 0:
            raise ValueError(f"--{name.replace('_', '-')} must be positive, got {value}")


def _scaling(args: argparse.Namespace) -> int:
    from anyorder.bench.fits import draw, table
    from anyorder.bench.models import find_models
    from anyorder.bench.scaling import SIZES, Case, Limits, run_scaling
    from anyorder.ops.backends import wait_for_loops

    _check(args, "seeds", "memory_limit", "time_limit", "threads")
    wait_for_loops()
    sizes = sorted(set(args.sizes or SIZES))
    if sizes[0] < 10:
        raise ValueError(f"--sizes must be at least 10 directed edges, one node with 5 links: got {sizes[0]}")
    cases = [Case(model, edges, args.seeds, not args.no_step) for edges in sizes for model in find_models(args.models)]
    limits = Limits(args.memory_limit, args.time_limit, args.threads)
    rows = [row for row in run_scaling(cases, limits, args.out, quiet=args.quiet) if row.threads == args.threads]
    print(f"\n{table(rows, args.clock)}\n")
    print(f"{args.clock} seconds on {args.threads} threads; rows in {args.out / 'scaling.csv'}")
    print(f"drawn in {draw(rows, args.out / 'scaling.png', args.clock)}")
    return 0


def _layer(args: argparse.Namespace) -> int:
    import torch

    from anyorder.bench.layer import compare_layer, encoder_layer, list_products, report
    from anyorder.ops.backends import wait_for_loops

    _check(args, "channels", "edges", "heads", "head_channels", "output_rank", "channels_hidden", "threads")
    wait_for_loops()
    torch.set_num_threads(args.threads)
    shape = ("channels", "edges", "heads", "head_channels", "channels_hidden")
    names = (*shape, "coupling", "classes", "sharing", "projection_classes", "output_rank", "mlp_classes", "direct")
    layer, x = encoder_layer(**{name: getattr(args, name) for name in names})
    found = compare_layer(layer, x, step=args.step, clock=args.clock)
    size = f"{x.index.num_entries - x.num_nodes:,} directed edges, {x.num_nodes:,} nodes"
    print(f"Enc_2->2({args.channels}, {args.head_channels}, {args.heads}), {args.coupling}, on {size}")
    weights = sum(weight.numel() for weight in layer.parameters())
    hidden = f"{args.mlp_classes}, {layer.widen.channels_out} channels inside"
    direct = "with" if args.direct else "without"
    print(f"classes: {args.classes}; sharing: {args.sharing}; attention {direct} a pointwise part")
    print(f"queries and keys: {args.projection_classes}; MLP: {hidden}; {weights:,} parameters")
    for each in found:
        total = sum(count * product.operations for product, count in each.products.items()) / 1e6
        print(f"\nmatrix products of the {each.name}: {total:,.1f} MFLOP\n{list_products(each.products)}")
    print(f"\n{args.clock} seconds on {args.threads} threads\n{report(found)}")
    return 0
