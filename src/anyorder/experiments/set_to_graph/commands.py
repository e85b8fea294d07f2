"""``anyorder train set-to-graph``, ``anyorder draw delaunay``, ``anyorder data simulate | statistics``: Table 3."""

from __future__ import annotations

import argparse
from pathlib import Path

from anyorder.datasets.commands import add_folder
from anyorder.training.own import add_data, add_options, add_shares, add_size, describe, model_folder, take_data, train

MODELS = ("ours", "ours-phi", "s2g", "s2g-plus", "siam", "siam-3", "gnn", "mlp")
EXAMPLE = """examples:
  anyorder train set-to-graph --data points.parquet
  anyorder train set-to-graph --data tracks.npz --model s2g-plus --epochs 20
  anyorder predict runs/set-to-graph/points-ours --input new.parquet --output edges.jsonl
"""


def add_train(parser: argparse.ArgumentParser) -> None:
    """``anyorder train set-to-graph``."""
    describe(parser, epilog=EXAMPLE)
    parser.set_defaults(run=_train)
    add_data(parser, "sets in a .parquet or .npz file: one per row, with edges or a partition")
    parser.add_argument("--data", type=Path, metavar="FILE", help="the same, as an option")
    add_shares(parser, "sets")
    parser.add_argument("--model", choices=MODELS, default="ours", help="model (default: ours)")
    add_size(parser, layers="layers before pairs", dropout=0.0, of=" of our models")
    add_options(parser, "set-to-graph", epochs=30, items="sets", batch_size=16)


def add_draw(parser: argparse.ArgumentParser) -> None:
    """``anyorder draw delaunay``."""
    parser.set_defaults(run=_draw)
    parser.add_argument(
        "folders",
        type=Path,
        nargs="*",
        metavar="DIR",
        help="folders of runs, drawn side by side (default: the models in the package)",
    )
    parser.add_argument(
        "--sets", type=int, default=1, metavar="N", help="number of test sets, drawn one below the other (default: 1)"
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed of the sets (default: 0)")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("delaunay.png"),
        metavar="FILE",
        help="picture, .png, .svg or .pdf (default: delaunay.png)",
    )


def add_simulate(parser: argparse.ArgumentParser) -> None:
    """``anyorder data simulate``."""
    add_folder(parser, _simulate)
    parser.add_argument("what", choices=("jets",), help="the kind of data")
    parser.add_argument("--jets", type=int, default=60_000, metavar="N", help="number of jets (default: 60000)")
    parser.add_argument("--seed", type=int, default=0, help="random seed, on which alone the sample depends (default: 0)")
    parser.add_argument("--workers", type=int, default=1, metavar="W", help="number of processes (default: 1)")
    parser.add_argument("--quiet", action="store_true", help="show no progress bar")


def add_statistics(parser: argparse.ArgumentParser) -> None:
    """``anyorder data statistics``."""
    add_folder(parser, _statistics)
    parser.add_argument("names", nargs="+", metavar="NAME", help="jets, jets_alice or jets_simulated")
    parser.add_argument("--output", type=Path, metavar="FILE", help="file for the Markdown table (default: print it)")


def _train(args: argparse.Namespace) -> int:
    take_data(args, "data")
    from anyorder.experiments.set_to_graph.files import LabelKind, read_sets
    from anyorder.experiments.set_to_graph.fitting import SetFit, own_run
    from anyorder.experiments.set_to_graph.task import SetsFromFile

    folder = model_folder(args, "set-to-graph", args.data.stem)
    sets = read_sets(args.data)
    if sets.kind is LabelKind.NONE:
        raise ValueError(f"{args.data}: expected labels to learn from, 'edges' or 'partition', got features alone")
    names = ("model", "layers", "channels", "dropout", "learning_rate", "batch_size", "epochs", "patience")
    fit = SetFit(**{name: getattr(args, name) for name in names})
    task = SetsFromFile(str(args.data.resolve()), sets.kind.value, args.valid, args.test)
    run = own_run(task, fit, largest=max(len(sample.points) for sample in sets.sets), seed=args.seed)
    use = f"anyorder predict {folder} --input FILE  (writes {sets.kind.value})"
    return train(run, args, folder, kind="set-to-graph", data=args.data.name, use=use)


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
