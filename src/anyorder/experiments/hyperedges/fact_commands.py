"""``anyorder train hyperedges`` with facts: a relation and two entities or more per line, ranked place by place."""

from __future__ import annotations

import argparse
from pathlib import Path


def is_facts(args: argparse.Namespace) -> bool:
    """Whether facts are asked for, or a folder with files train, valid and test is given."""
    folder: Path | None = args.given
    return bool(args.facts or args.relation or (folder is not None and folder.is_dir() and any(folder.glob("train*"))))


def train_facts(args: argparse.Namespace) -> int:
    """Train a model that fills the gaps of facts."""
    if args.model != "ours":
        raise ValueError(f"facts are completed by ours alone, got --model {args.model}")
    if args.given is None or not args.given.exists():
        raise FileNotFoundError(
            f"there is no file or folder {args.given}: name the facts, anyorder train hyperedges DATA --facts"
        )
    from anyorder.experiments.hyperedges.fact_models import FactEncoder
    from anyorder.experiments.hyperedges.fact_task import OwnFacts
    from anyorder.training.own import model_folder, train
    from anyorder.training.run import Optimiser, Run, Schedule

    folder = model_folder(args, "hyperedges", args.given.name if args.given.is_dir() else args.given.stem)
    run = Run(
        OwnFacts(path=str(args.given.absolute()), relation=_relation(args), validation=args.valid, test=args.test),
        FactEncoder(),
        Optimiser("adam", args.learning_rate or 1e-3, average=0.99),
        Schedule(epochs=args.epochs, patience=args.patience, decay="linear"),
        batch_size=args.batch_size or 512,
        eval_batch_size=256,
        seed=args.seed,
    )
    use = f'`anyorder predict {folder} --complete "relation,entity,?"` ranks what fills the gap, --input FILE of many facts'
    code = train(run, args, folder, kind="hyperedges", data=args.given.name, use=use)
    if not (args.dry_run or args.folds):
        print(by_arity(folder))
    return code


def _relation(args: argparse.Namespace) -> str:
    """The column of the relation; one that is called so is taken, and said."""
    from anyorder.peek import look
    from anyorder.training.own import tell

    given: Path = args.given
    if args.relation or given.is_dir() or "relation" not in (seen := look(given)).names:
        return str(args.relation or "")
    others = ", ".join(name for name in seen.names if name != "relation")
    tell([f"{given} has a column 'relation': the entities of a fact are {others}, in this order (--relation)"], args)
    return "relation"


def by_arity(folder: Path) -> str:
    """The scores by the number of entities in a fact, the model beside counts of pairs."""
    from anyorder.experiments.hyperedges.fact_task import PAIR_COUNTS
    from anyorder.training.records import RECORD, Record

    metrics = Record.read(folder / RECORD).metrics
    parts = [part for part in metrics if part.endswith(" entities") and not part.startswith(PAIR_COUNTS)]
    lines = []
    for part in parts:
        for title, found in (("model", metrics[part]), (PAIR_COUNTS, metrics.get(f"{PAIR_COUNTS}, {part}", {}))):
            lines.append(f"{part}  {title:<11}  " + "  ".join(f"{name} {value:.3f}" for name, value in found.items()))
    return "\n".join(lines)
