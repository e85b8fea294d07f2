"""``anyorder train set-to-graph``, ``anyorder draw delaunay``, ``anyorder data simulate | statistics``: Table 3."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from anyorder.training.own import add_options, add_shares, count, model_folder, train

MODELS = ("ours", "ours-phi", "s2g", "s2g-plus", "siam", "siam-3", "gnn", "mlp")
EXAMPLE = """examples:
  anyorder train set-to-graph --data points.parquet
  anyorder train set-to-graph --data tracks.npz --model s2g-plus --epochs 20
  anyorder predict runs/set-to-graph/points-ours --input new.parquet --output edges.jsonl
"""


def add_train(kinds: Any, predict: argparse.ArgumentParser) -> None:
    """``anyorder train set-to-graph``."""
    text = "predict the edges, or a partition, of sets of points"
    parser: argparse.ArgumentParser = kinds.add_parser(
        "set-to-graph",
        help=text,
        description=f"{text[0].upper()}{text[1:]}, after sets of your own.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=_train)
    parser.add_argument(
        "--data", type=Path, required=True, metavar="FILE", help=".parquet or .npz: a set per row, with edges or a partition"
    )
    add_shares(parser, "sets")
    parser.add_argument("--model", choices=MODELS, default="ours")
    parser.add_argument("--channels", type=count, default=64, metavar="N", help="width of the model (default: 64)")
    parser.add_argument("--layers", type=count, default=4, metavar="N", help="layers before pairs (default: 4)")
    parser.add_argument("--dropout", type=float, default=0.0, metavar="SHARE", help="of ours (default: 0)")
    add_options(parser, "set-to-graph", epochs=30, items="sets", batch_size=16)


def add_draw(commands: Any) -> None:
    """``anyorder draw delaunay``."""
    text = "draw what trained models answer"
    kinds = commands.add_parser("draw", help=text, description=f"{text.capitalize()}.").add_subparsers(
        dest="kind", metavar="KIND", required=True
    )
    text = "draw triangulations: edges that are right, missed and wrong"
    parser: argparse.ArgumentParser = kinds.add_parser("delaunay", help=text, description=f"{text.capitalize()}.")
    parser.set_defaults(run=_draw)
    parser.add_argument(
        "folders", type=Path, nargs="*", metavar="DIR", help="runs, side by side (default: the models that come along)"
    )
    parser.add_argument("--sets", type=int, default=1, metavar="N", help="how many test sets, one below the other")
    parser.add_argument("--seed", type=int, default=0, help="of the sets (default: 0)")
    parser.add_argument("--output", type=Path, default=Path("delaunay.png"), metavar="FILE", help=".png, .svg or .pdf")


def add_data(commands: Any) -> None:
    """``anyorder data simulate`` and ``anyorder data statistics``."""
    from anyorder.datasets.commands import add_command

    simulate = add_command(commands, "simulate", _simulate, "simulate a dataset that stands in for the published one")
    simulate.add_argument("what", choices=("jets",))
    simulate.add_argument("--jets", type=int, default=60_000, metavar="N", help="jets in all (default: 60000)")
    simulate.add_argument("--seed", type=int, default=0, help="the sample depends on it alone (default: 0)")
    simulate.add_argument("--workers", type=int, default=1, metavar="W", help="processes (default: 1)")
    simulate.add_argument("--quiet", action="store_true", help="no progress bar")
    known = add_command(commands, "statistics", _statistics, "describe samples of jets beside the official one")
    known.add_argument("names", nargs="+", metavar="NAME", help="jets, jets_alice or jets_simulated")
    known.add_argument("--output", type=Path, metavar="FILE", help="write the Markdown table to a file")


def _train(args: argparse.Namespace) -> int:
    from anyorder.experiments.set_to_graph.files import LabelKind, read_sets
    from anyorder.experiments.set_to_graph.task import SetsFromFile
    from anyorder.training.run import Optimiser, Run, Schedule

    folder = model_folder(args, "set-to-graph", args.data.stem)
    sets = read_sets(args.data)
    if sets.kind is LabelKind.NONE:
        raise ValueError(f"{args.data}: expected labels to learn from, 'edges' or 'partition', got features alone")
    run = Run(
        SetsFromFile(str(args.data.resolve()), sets.kind.value, args.valid, args.test),
        model_config(args, max(len(sample.points) for sample in sets.sets)),
        Optimiser(learning_rate=args.learning_rate, clip=1.0),
        Schedule(epochs=args.epochs, warmup_epochs=args.epochs / 10, decay="linear", patience=args.patience),
        batch_size=args.batch_size,
        seed=args.seed,
    )
    print(f"{len(sets)} sets in {args.data}, labelled by {sets.kind.value}")
    use = f"`anyorder predict {folder} --input FILE` writes {sets.kind.value}"
    return train(run, args, folder, kind="set-to-graph", data=args.data.name, use=use)


def model_config(args: argparse.Namespace, max_points: int) -> Any:
    """The model that the arguments describe."""
    from anyorder.experiments.set_to_graph import models
    from anyorder.layers import RandomFeatures, Softmax

    width, depth = args.channels, args.layers
    widths, head = (width,) * depth, (width, width)
    heads = next(number for number in (4, 2, 1) if width % number == 0)
    ours = models.SetEncoder(depth, width, heads, width // heads, head, Softmax(), None, args.dropout)
    return {
        "ours": ours,
        "ours-phi": models.SetEncoder(**{**vars(ours), "kernel": RandomFeatures()}),
        "s2g": models.DeepSetPairs(widths, head),
        "s2g-plus": models.DeepSetPairs(widths, head, basis="full"),
        "siam": models.SiamesePairs(widths, head),
        "siam-3": models.SiameseTriplets(widths),
        "gnn": models.NearestNeighbourGNN(widths, neighbours=5),
        "mlp": models.PaddedMLP(widths, max_points),
    }[args.model]


def _draw(args: argparse.Namespace) -> int:
    from anyorder.experiments.set_to_graph.delaunay_picture import draw_models

    for row in draw_models(args.folders, args.output, num_sets=args.sets, seed=args.seed):
        for panel in row:
            kinds = ", ".join(f"{len(edges)} {kind}" for kind, edges in panel.edges().items())
            print(f"{panel.title}: {len(panel.points)} points, edges {kinds}, F1 {panel.f1:.3f}")
    print(f"drawn in {args.output}")
    return 0


def _simulate(args: argparse.Namespace) -> int:
    from anyorder.datasets.registry import folder
    from anyorder.experiments.set_to_graph.jet_simulation import simulate

    place = folder("jets_simulated", data_dir=args.data_dir)
    files = simulate(args.jets, out_dir=place, seed=args.seed, workers=args.workers, progress=not args.quiet)
    for part, path in files.items():
        print(f"{part}: {path}")
    print("`anyorder data statistics jets_simulated` shows them beside the official sample")
    return 0


def _statistics(args: argparse.Namespace) -> int:
    from anyorder.datasets.registry import locate
    from anyorder.experiments.set_to_graph.jet_statistics import statistics, statistics_table
    from anyorder.experiments.set_to_graph.jets import SPLITS, concatenate, read_jets
    from anyorder.files import replacing

    columns = {}
    for name in args.names:
        if not name.startswith("jets"):
            raise ValueError(f"statistics are those of jets: expected jets, jets_alice or jets_simulated, got {name!r}")
        place = locate(name, data_dir=args.data_dir)
        columns[name] = statistics(concatenate([read_jets(place / file) for file in SPLITS.values()]))
    table = statistics_table(columns)
    if args.output is None:
        print(table, end="")
        return 0
    with replacing(args.output) as temporary:
        temporary.write_text(f"# Samples of jets\n\nMade by `anyorder data statistics {' '.join(args.names)}`.\n\n{table}")
    print(f"in {args.output}")
    return 0
