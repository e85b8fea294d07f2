"""``anyorder train hyperedges`` with hyperedges of any size: which sets of nodes belong together."""

from __future__ import annotations

import argparse


def train_sets(args: argparse.Namespace) -> int:
    """Train on a list of hyperedges or a HIF file."""
    from anyorder.experiments.hypergraphs.prediction.models import SET_MODELS
    from anyorder.experiments.hypergraphs.prediction.task import OwnEdgeSets
    from anyorder.suggest import nearest
    from anyorder.training.own import model_folder, train
    from anyorder.training.run import Optimiser, Run, Schedule, slug

    models = {slug(row): model for row, model in SET_MODELS.items()}
    if args.model not in models:
        raise ValueError(f"unknown model of hyperedges of any size {args.model!r}{nearest(args.model, models)}")
    source = args.hif or args.edges
    folder = model_folder(args, "hyperedges", source.stem)
    path, shares = str(source.absolute()), {"valid_share": args.valid, "test_share": args.test}
    task = OwnEdgeSets(hif=path, **shares) if args.hif else OwnEdgeSets(edges=path, **shares)
    schedule = Schedule(epochs=args.epochs, patience=args.patience)
    run = Run(task, models[args.model], Optimiser("adam", args.learning_rate), schedule, batch_size=1, seed=args.seed)
    use = f"anyorder predict {folder} --candidates FILE  (scores sets of nodes, one per line)"
    return train(run, args, folder, kind="hyperedges", data=source.name, use=use)
