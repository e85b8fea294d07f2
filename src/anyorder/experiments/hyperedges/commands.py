"""``anyorder train hyperedges``: which entities belong together, after a table of tuples of your own."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from anyorder.experiments.hyperedges.fact_commands import is_facts, train_facts
from anyorder.training.own import add_data, add_options, add_shares, count, describe, model_folder, take_data, train

MODELS = (
    "ours",
    "ours-one-layer",
    "ours-softmax",
    "s2g-plus",
    "hyper-sagnn",
    "hyper-sagnn-walks",
    "dhne",
    "node2vec-mean",
    "node2vec-min",
)
SET_MODELS = ("ours", "hyper-sagnn", "nhp-cheshire", "hypergraphconv-mean")
_TRAIN_SETS = "anyorder.experiments.hypergraphs.prediction.commands:train_sets"  # hyperedges of any size are its domain
_FORMS = """The table has names or numbers, one column per kind of entity. Hyperedges of any size are a list, one per line,
with the names of their nodes between tabs, commas or spaces, or a HIF file. Facts of a knowledge hypergraph (--facts) are a
relation and then its entities in order, two or more, per line."""
EXAMPLE = """examples:
  anyorder train hyperedges --edges hyperedges.txt
  anyorder train hyperedges jf17k --facts
  anyorder train hyperedges facts.csv --relation predicate
  anyorder train hyperedges --data triples.csv --columns user,item,tag
  anyorder train hyperedges --data orders.tsv --delimiter tab --columns customer,product --weight quantity
  anyorder predict runs/hyperedges/triples-ours --candidates candidates.csv
  anyorder predict runs/hyperedges/triples-ours --complete "user42,?,?" --top 10
"""


def add_predict(parser: argparse.ArgumentParser) -> None:
    """What ``predict`` takes for these models."""
    parser.add_argument("--candidates", type=Path, metavar="CSV", help="hyperedges: tuples to score")
    parser.add_argument("--complete", metavar="TUPLE", help='hyperedges: tuple with gaps to complete, such as "user42,?,?"')
    parser.add_argument("--top", type=int, metavar="N", help="hyperedges: number of completions (default: 10)")
    parser.add_argument(
        "--skip-unknown",
        action="store_const",
        const="yes",
        help="facts: leave out lines with names that training did not see",
    )


def add_train(parser: argparse.ArgumentParser) -> None:
    """``anyorder train hyperedges``."""
    describe(parser, _FORMS, EXAMPLE)
    parser.set_defaults(run=_train)
    add_data(parser, "table (CSV, TSV), list of hyperedges or HIF file")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--data", type=Path, metavar="CSV", help="table in UTF-8; repeated rows count more")
    source.add_argument("--edges", type=Path, metavar="FILE", help="hyperedges of any size, one per line")
    source.add_argument("--hif", type=Path, metavar="FILE", help="hyperedges of any size in a HIF file (.json, .json.gz)")
    text = "facts: a relation and two entities or more per line, in a file or in a folder with train, valid and test files"
    parser.add_argument("--facts", action="store_true", help=text)
    text = "facts in a table: column of the relation; the other columns are the entities in order, blank where there is none"
    parser.add_argument("--relation", metavar="COLUMN", help=text)
    parser.add_argument("--columns", metavar="A,B,...", help="columns of a tuple, two or more, for --data")
    parser.add_argument("--weight", metavar="COLUMN", help="column with the weight of a row (default: 1 for every row)")
    parser.add_argument(
        "--no-header", action="store_true", help="read a file without a line of column names: --columns names them in order"
    )
    parser.add_argument("--delimiter", default=",", metavar="CHAR", help="character between fields, or 'tab' (default: ,)")
    add_shares(parser, "distinct tuples", rest="the remaining tuples")
    parser.add_argument("--negatives", type=count, default=5, metavar="N", help="number of negatives per tuple (default: 5)")
    sets = f"for --edges and --hif {', '.join(SET_MODELS)}"
    models = [*MODELS, *(name for name in SET_MODELS if name not in MODELS)]
    parser.add_argument("--model", choices=models, default="ours", help=f"model; {sets} (default: ours)")
    add_options(parser, "hyperedges", epochs=100, items="tuples", batch_size=256, patience=20)
    parser.set_defaults(batch_size=None, learning_rate=None)  # facts have others


def _take(args: argparse.Namespace) -> None:
    """The first argument is a table, a list or HIF, as it looks; all columns of a table unless some are named."""
    from anyorder.peek import look

    if args.given is None:
        return take_data(args, "data", "edges", "hif")
    seen = look(args.given)
    table = args.columns or args.weight or args.no_header or seen.form == "table"
    take_data(args, "hif" if seen.form == "json" else "data" if table else "edges", "data", "edges", "hif")
    if seen.form == "table" and not args.columns:
        args.columns = ",".join(name for name in seen.names if name != args.weight)
    if seen.form == "table" and args.delimiter == "," and args.given.suffix == ".tsv":
        args.delimiter = "tab"
    return None


def _train(args: argparse.Namespace) -> int:
    if is_facts(args):
        return train_facts(args)
    args.batch_size, args.learning_rate = args.batch_size or 256, args.learning_rate or 1e-3
    _take(args)
    from anyorder.training.registry import function

    if args.data is None:
        if args.columns or args.weight:
            raise ValueError("--columns and --weight belong to a table, --data: a list of hyperedges has neither")
        return int(function(_TRAIN_SETS)(args))
    if not args.columns:
        raise ValueError("--columns is needed with --data: the columns of a tuple, such as user,item,tag")
    if args.model not in MODELS:
        raise ValueError(
            f"{args.model} scores hyperedges of any size, --edges or --hif: expected one of {', '.join(MODELS)}"
        )
    folder = model_folder(args, "hyperedges", args.data.stem)
    names = ("epochs", "patience", "learning_rate", "batch_size", "seed")
    run = own_run(_task(args), args.model, **{name: getattr(args, name) for name in names})
    use = f"anyorder predict {folder} --candidates FILE  (scores tuples, --complete ranks what fits others)"
    return train(run, args, folder, kind="hyperedges", data=args.data.name, use=use)


def own_run(
    task: Any,
    model: str,
    *,
    epochs: int,
    patience: int | None = 20,
    learning_rate: float = 1e-3,
    batch_size: int = 256,
    seed: int = 0,
) -> Any:
    """The run of a model on a user's tuples."""
    from anyorder.training.run import Optimiser, Run, Schedule

    kind: Any = "rmsprop" if model == "hyper-sagnn-walks" else "adam"
    ours = model.startswith("ours")  # as in the table: overfits later, and validation has less noise
    return Run(
        task,
        model_config(model),
        Optimiser(kind, learning_rate, average=0.9 if ours else 0.0),
        Schedule(epochs=epochs, patience=patience, decay="linear" if ours else "none"),
        batch_size=batch_size,
        eval_batch_size=4096,
        seed=seed,
    )


def _task(args: argparse.Namespace) -> Any:
    from anyorder.experiments.hyperedges.task import TableHyperedges

    columns = tuple(name.strip() for name in args.columns.split(","))
    return TableHyperedges(
        path=str(args.data.resolve()),
        columns=columns,
        weight=args.weight,
        header=not args.no_header,
        delimiter="\t" if args.delimiter == "tab" else args.delimiter,
        validation=args.valid,
        test=args.test,
        negatives=args.negatives,
        positive_weight=float(args.negatives),  # as much weight on what is there as on what is not
    )


def model_config(name: str) -> Any:
    """The model of a name."""
    from anyorder.experiments.hyperedges import models
    from anyorder.layers import Softmax

    return {
        "ours": models.TupleEncoder(dropout=0.1),
        "ours-one-layer": models.TupleEncoder(layers=0, dropout=0.1),
        "ours-softmax": models.TupleEncoder(kernel=Softmax(), dropout=0.1),
        "s2g-plus": models.TupleMLP(),
        "hyper-sagnn": models.TupleSAGNN(),
        "hyper-sagnn-walks": models.TupleSAGNN(features="walks"),
        "dhne": models.TupleDHNE(),
        "node2vec-mean": models.TupleSimilarity("mean"),
        "node2vec-min": models.TupleSimilarity("min"),
    }[name]
