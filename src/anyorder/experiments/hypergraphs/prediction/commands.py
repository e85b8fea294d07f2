"""``anyorder train hyperedges`` with hyperedges of any size: which sets of nodes belong together."""

from __future__ import annotations

import argparse
from typing import Any


def train_sets(args: argparse.Namespace) -> int:
    """Train on a list of hyperedges or a HIF file."""
    from anyorder.experiments.hypergraphs.prediction.models import SET_MODELS
    from anyorder.experiments.hypergraphs.prediction.task import OwnEdgeSets
    from anyorder.suggest import nearest
    from anyorder.training.own import model_folder, train
    from anyorder.training.run import slug

    models = {slug(row): model for row, model in SET_MODELS.items()}
    if args.model not in models:
        raise ValueError(f"unknown model of hyperedges of any size {args.model!r}{nearest(args.model, models)}")
    source = args.hif or args.edges
    folder = model_folder(args, "hyperedges", source.stem)
    path, shares = str(source.absolute()), {"valid_share": args.valid, "test_share": args.test}
    task = OwnEdgeSets(hif=path, **shares) if args.hif else OwnEdgeSets(edges=path, **shares)
    run = own_run(task, models[args.model], args.epochs, args.patience, args.learning_rate, args.seed)
    use = f"anyorder predict {folder} --candidates FILE  (scores sets of nodes, one per line)"
    return train(run, args, folder, kind="hyperedges", data=source.name, use=use)


def own_run(task: Any, model: Any, epochs: int, patience: int | None, rate: float, seed: int) -> Any:
    """The run of a model on a user's hyperedges of any size."""
    from anyorder.training.run import Optimiser, Run, Schedule

    schedule = Schedule(epochs=epochs, patience=patience)
    return Run(task, model, Optimiser("adam", rate), schedule, batch_size=1, seed=seed)
