"""``anyorder train hypergraph``: classes of the nodes of a user's own hypergraph."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from anyorder.training.own import add_data, add_options, add_shares, describe, model_folder, take_data, train

_FORMS = """The hypergraph is a list of hyperedges (one per line, the names of its nodes separated by tabs, commas or
spaces) with a CSV file of labels (columns node, label) and optionally one of features (node, then numbers), or one HIF file
(JSON), whose node attributes are the features and the label. Nodes without a label are not trained on; `anyorder predict`
names their class. Without features, nodes are known by degrees, the spectrum of the hypergraph and the labels of training
nodes, which are hidden where they are asked for."""


def add_predict(parser: argparse.ArgumentParser) -> None:
    """What ``predict`` takes for these models."""
    parser.add_argument("--features", type=Path, metavar="FILE", help="hypergraphs: CSV of node features")


def add_train(parser: argparse.ArgumentParser) -> None:
    """``anyorder train hypergraph``."""
    describe(parser, _FORMS)
    add_data(parser, "list of hyperedges or HIF file")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--edges", type=Path, metavar="FILE", help="hyperedges, one per line")
    source.add_argument("--hif", type=Path, metavar="FILE", help="hypergraph in the interchange format (.json, .json.gz)")
    parser.add_argument("--features", type=Path, metavar="FILE", help="CSV of node features (default: of the structure)")
    parser.add_argument(
        "--labels", type=Path, metavar="FILE", help="CSV of node labels, or one label per line, for a list of hyperedges"
    )
    parser.add_argument(
        "--inputs",
        nargs="+",
        choices=("spectrum", "labels", "none"),
        help="what nodes are known by besides features or degrees (default: spectrum labels without features, else none)",
    )
    parser.add_argument(
        "--label", default="label", metavar="NAME", help="node attribute with the class, for --hif (default: label)"
    )
    add_shares(parser, "labelled nodes", valid=0.25, test=0.25)
    rows = "model of `anyorder list hypergraphs`: ours, mlp, ... (default: ours)"
    parser.add_argument("--model", metavar="NAME", help=rows)
    add_options(parser, "hypergraph", epochs=300)
    parser.set_defaults(run=_train)


def _train(args: argparse.Namespace) -> int:
    hif = args.given is not None and ".json" in args.given.suffixes
    take_data(args, *(("hif", "edges") if hif else ("edges", "hif")))
    from anyorder.experiments.hypergraphs.models import DEFAULT, MODELS
    from anyorder.suggest import nearest
    from anyorder.training.run import slug

    names = {slug(row): row for row in MODELS}
    args.model = slug(args.model or DEFAULT)
    if args.model not in names:
        raise ValueError(f"unknown model {args.model!r}{nearest(args.model, names)}")
    source = args.hif or args.edges
    folder = model_folder(args, "hypergraph", source.stem)
    run = own_run(with_inputs(_task(args), args.inputs, args.data_dir), names[args.model], args.epochs, args.seed)
    use = f"anyorder predict {folder}  (writes a class for every node)"
    return train(run, args, folder, kind="hypergraph", data=source.name, use=use)


def own_run(task: Any, row: str, epochs: int, seed: int) -> Any:
    """The run of a model on a user's hypergraph."""
    from anyorder.experiments.hypergraphs.models import MODELS
    from anyorder.training.run import Optimiser, Run, Schedule

    schedule = Schedule(epochs=epochs, patience=max(1, epochs // 3))
    return Run(task, MODELS[row], Optimiser(learning_rate=1e-2, weight_decay=5e-4), schedule, batch_size=1, seed=seed)


def with_inputs(task: Any, inputs: list[str] | None, data_dir: Path | None = None) -> Any:
    """The task with what nodes are known by; without features, by spectrum and labels unless it is said."""
    from anyorder.experiments.hypergraphs.structure import LABEL_SHARE, SPECTRUM, is_bare

    data = task.read(data_dir)
    asked = inputs or (["spectrum", "labels"] if is_bare(data) else ["none"])
    if "none" in asked and len(asked) > 1:
        raise ValueError(f"--inputs none stands alone, got {' '.join(asked)}")
    return replace(task, spectrum=SPECTRUM if "spectrum" in asked else 0, label_inputs=LABEL_SHARE * ("labels" in asked))


def _task(args: argparse.Namespace) -> Any:
    from anyorder.experiments.hypergraphs.own import OwnNodes

    if not (0 < args.valid < 1 and 0 <= args.test < 1 and args.valid + args.test < 1):
        raise ValueError(f"--valid and --test are shares that leave nodes to train on, got {args.valid} and {args.test}")
    shares: Any = {"train_share": 1 - args.valid - args.test, "valid_share": args.valid, "normalise": "columns"}
    if args.hif is not None:
        if args.features or args.labels:
            raise ValueError("a HIF file has its features and labels inside: --features and --labels belong to --edges")
        return OwnNodes(hif=str(args.hif.absolute()), label=args.label, **shares)
    if args.labels is None:
        raise ValueError("--labels is needed with --edges: a CSV file with the columns node, label")
    features = "" if args.features is None else str(args.features.absolute())
    return OwnNodes(edges=str(args.edges.absolute()), features=features, labels=str(args.labels.absolute()), **shares)
