"""``anyorder train graph`` step by step: say what is seen, train, show both rows, name the next command."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from anyorder.experiments.graphs.fitting import Fit, Outcome, compare, fitted_run, train
from anyorder.experiments.graphs.own import OwnGraphs, resolve
from anyorder.experiments.graphs.shapes import GraphShapes
from anyorder.experiments.graphs.splits import RowParts
from anyorder.experiments.graphs.values import GraphSet
from anyorder.saving import CONFIG
from anyorder.training.checkpoints import load_run
from anyorder.training.options import machine
from anyorder.training.own import model_folder
from anyorder.training.run import Run
from anyorder.training.scores import Score, score_table


def run_command(args: argparse.Namespace) -> int:
    """The whole command."""
    folder = model_folder(args, "graph", args.data.stem if args.data.is_file() else args.data.name)
    task = own_task(args)
    graphs = task.read(args.data_dir)
    task, said = resolve(task, graphs, level=args.level or "", targets=args.target, goal=args.goal or "")
    parts = task.parts(graphs, args.seed)
    shapes = task.shapes(graphs, parts)
    _tell([*described(graphs, task, parts, shapes), *said], args)
    run = _run(args, task, graphs, shapes, folder)
    if args.dry_run:
        print("nothing was trained: leave --dry-run out to begin")
        return 0
    if args.folds:
        return _folds(args, run, folder)
    outcome = _outcome(args, run, folder)
    print(score_table([("model", outcome.model), (f"baseline: {outcome.cheap_name}", outcome.cheap)]))
    _advise(outcome, folder, task)
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
    names = ("model", "channels", "layers", "dropout", "epochs", "patience", "learning_rate", "batch_size")
    fit = Fit(**{name: getattr(args, name) for name in names}, positions=chosen)
    if args.epochs is None and (folder / CONFIG).exists():  # go on with what was interrupted
        fit = replace(fit, epochs=load_run(folder)[0].schedule.epochs)
    run, seconds = fitted_run(task, graphs, shapes, fit, seed=args.seed, settings=args.set)
    _tell([*_sized(run, shapes), *([_time(run, seconds)] if seconds else [])], args)
    return run


def _sized(run: Run, shapes: GraphShapes) -> list[str]:
    model = run.model.build(shapes)
    weights = sum(weight.numel() for weight in model.parameters())
    settings = getattr(run.model, "positions", ())
    where = f", positions: {' '.join(settings)}" if settings else ""
    return [f"model: {weights:,} weights{where}; at most {run.schedule.epochs} epochs, batches of {run.batch_size}"]


def _time(run: Run, seconds: float) -> str:
    total = seconds * run.schedule.epochs
    memory = _peak_memory()
    return f"about {total / 60:.1f} minutes at most ({seconds:.2g} s an epoch), {memory:.1f} GB so far (--epochs, --minutes)"


def _peak_memory() -> float:
    """The most memory that this process has held, in GB."""
    import resource
    import sys

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**30 if sys.platform == "darwin" else 2**20)


def _outcome(args: argparse.Namespace, run: Run, folder: Path) -> Outcome:
    return compare(run, folder, train(run, folder, machine(args), name=args.data.name, settings=tuple(args.set)))


def _folds(args: argparse.Namespace, run: Run, folder: Path) -> int:
    """Each fold by itself, then mean and deviation."""
    outcomes: list[Outcome] = []
    for fold in range(args.folds):
        assert isinstance(run.task, OwnGraphs)
        one = replace(run, task=replace(run.task, fold=fold))
        outcomes.append(_outcome(args, one, folder / f"fold-{fold}"))
        both = (outcomes[-1].model[0], outcomes[-1].cheap[0])
        _tell([f"fold {fold}: {both[0].name} {both[0].value:.4g}, baseline {both[1].value:.4g}"], args)
    rows: list[tuple[str, Sequence[Score]]] = [("model", _mean([each.model for each in outcomes]))]
    rows.append(("baseline", _mean([each.cheap for each in outcomes])))
    print(score_table(rows, spread="deviation"))
    if not replace(outcomes[0], model=tuple(rows[0][1]), cheap=tuple(rows[1][1])).beaten:
        print("warning: the model does not beat the cheap baseline on average")
    print(f"next: anyorder train graph {args.data} (without --folds) makes a model to predict with")
    return 0


def _mean(folds: Sequence[Sequence[Score]]) -> tuple[Score, ...]:
    made = []
    for scores in zip(*folds, strict=True):
        values = [score.value for score in scores]
        mean, spread = statistics.fmean(values), statistics.pstdev(values)
        made.append(Score(scores[0].name, mean, mean - spread, mean + spread))
    return tuple(made)


def _advise(outcome: Outcome, folder: Path, task: Any) -> None:
    if not outcome.beaten:
        print(
            f"warning: the model does not beat the cheap baseline ({outcome.cheap_name}); "
            "try --positions degree walk, --epochs, --dropout, or use the baseline"
        )
    if outcome.record.unfinished:
        print(f"{outcome.record.unfinished} so far; `anyorder resume {folder}` goes on with the training")
    what = "pairs" if task.level == "links" and not task.targets else task.level
    print(f"next: anyorder predict {folder}  (answers for all {what}; --input NEW for other data)")


def _tell(lines: Sequence[str], args: argparse.Namespace) -> None:
    if not args.quiet:
        print("\n".join(lines))
