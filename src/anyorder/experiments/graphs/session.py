"""``anyorder train graph`` step by step: say what is seen, train, show both rows, name the next command."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from anyorder.experiments.graphs.fitting import Fit, fitted_run, job_of
from anyorder.experiments.graphs.own import OwnGraphs, resolve
from anyorder.experiments.graphs.shapes import GraphShapes
from anyorder.experiments.graphs.values import GraphSet
from anyorder.saving import CONFIG
from anyorder.training.checkpoints import load_run
from anyorder.training.options import machine
from anyorder.training.outcome import told
from anyorder.training.own import check_folds, each_fold, fitted, model_folder, tell
from anyorder.training.parts import RowParts
from anyorder.training.run import Run
from anyorder.training.sizing import sized

_HINT = "try --positions degree walk, --epochs, --dropout, or use the baseline"


def run_command(args: argparse.Namespace) -> int:
    """The whole command."""
    check_folds(args)
    folder = model_folder(args, "graph", args.data.stem if args.data.is_file() else args.data.name)
    task = own_task(args)
    graphs = task.read(args.data_dir)
    task, said = resolve(task, graphs, level=args.level or "", targets=args.target, goal=args.goal or "")
    parts = task.parts(graphs, args.seed)
    shapes = task.shapes(graphs, parts)
    tell([*described(graphs, task, parts, shapes), *said], args)
    run = _run(args, task, graphs, shapes, folder)
    if args.dry_run:
        tell(["nothing was trained: leave --dry-run out to begin"], args)
        return 0
    job = job_of(run, args.data.name, tuple(args.set))
    if args.folds:
        return each_fold(run, args, folder, job)
    outcome, part = fitted(run, folder, machine(args), job)
    what = "pairs" if task.level == "links" and not task.targets else task.level
    use = f"anyorder predict {folder}  (answers for all {what}; --input NEW for other data)"
    print(told(outcome, folder, part=part, use=use, hint=_HINT))
    return 0


def own_task(args: argparse.Namespace) -> OwnGraphs:
    """The task that the arguments describe, with what they leave open."""
    paths: dict[str, Any] = {"data": args.data, "nodes": args.node_table, "graphs": args.graph_table}
    paths |= {"valid_data": args.valid_data, "test_data": args.test_data}
    split = str(Path(args.split).absolute()) if args.split.endswith(".npz") else args.split
    settings: dict[str, Any] = {name: "" if path is None else str(path.absolute()) for name, path in paths.items()}
    return OwnGraphs(
        **settings,
        ends=tuple(args.ends),
        node=args.node,
        graph=args.graph,
        directed=args.directed,
        duplicates=args.duplicates,
        split_by=split,
        ignored=tuple(args.ignore),
        valid=args.valid,
        test=args.test,
        folds=args.folds,
    )


def described(graphs: GraphSet, task: OwnGraphs, parts: RowParts, shapes: GraphShapes) -> list[str]:
    """What is in the data, a line each."""
    alone = int((graphs.degrees == 0).sum())
    kind = "directed" if graphs.directed else "undirected"
    some = f", {alone:,} nodes without edges" if alone else ""
    lines = [*graphs.notes]
    lines.append(f"{graphs.num_graphs:,} graphs, {graphs.num_nodes:,} nodes, {len(graphs.edges):,} {kind} edges{some}")
    columns = ((shapes.nodes, "nodes"), (shapes.edges, "edges"))
    for encoding, what in columns:
        missing = f", {len(encoding.gaps)} with gaps" if encoding.gaps else ""
        kinds = f"{len(encoding.numbers)} numbers{missing}, {len(encoding.categories)} categories"
        lines.append(f"features of {what}: {kinds if encoding.channels else 'none'}")
    goal = shapes.goal
    if goal.kind == "classification":
        asked = "; ".join(f"{name}: {len(known)} classes" for name, known in zip(goal.targets, goal.classes, strict=True))
    else:
        asked = "; ".join(
            f"{name}: mean {m:.4g}, deviation {s:.4g}" for name, m, s in zip(goal.targets, goal.mean, goal.std, strict=True)
        )
    lines.append(f"level {task.level}, {goal.kind}, {asked}")
    sizes = f"{len(parts.train):,} {task.level} to train on, {len(parts.valid):,} to validate, {len(parts.test):,} to test"
    return [*lines, sizes]


def _run(args: argparse.Namespace, task: OwnGraphs, graphs: GraphSet, shapes: GraphShapes, folder: Path) -> Run:
    """The run, with as many epochs as fit a few minutes where none are given; an interrupted one keeps its own."""
    chosen = None if args.positions is None else tuple(kind for kind in args.positions if kind != "none")
    names = ("model", "channels", "layers", "dropout", "patience", "learning_rate", "batch_size")
    epochs = args.epochs if args.fixed else None
    if epochs is None and (folder / CONFIG).exists():  # go on with what was interrupted
        epochs = load_run(folder)[0].schedule.epochs
    fit = Fit(**{name: getattr(args, name) for name in names}, positions=chosen, epochs=epochs)
    run, seconds = fitted_run(task, graphs, shapes, fit, seed=args.seed, settings=args.set)
    settings = getattr(run.model, "positions", ())
    where = [f"positions: {' '.join(settings)} (--positions)"] if settings else []
    tell([*where, *sized(run, task.load(seed=args.seed, data_dir=None), seconds)], args)
    return run
