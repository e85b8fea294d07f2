"""``anyorder train graph``: classes and numbers of people's own graphs, nodes and links."""

from __future__ import annotations

import argparse
from pathlib import Path

from anyorder.training.own import add_options, add_shares, count, describe

_FORMS = """DATA is a TU folder, a Geom-GCN folder, a folder with edges.csv and perhaps nodes.csv and graphs.csv, a table of
edges (CSV, TSV, Parquet; --node-table beside it), GraphML, GML, GEXF, node-link JSON, or the arrays of a PyG Data or Batch
(edge_index, x, edge_attr, y, batch) as NPZ or safetensors. What is not said is seen from the data, and said."""
EXAMPLE = """examples:
  anyorder train graph MUTAG --dry-run                          what it would do
  anyorder train graph MUTAG --folds 10                         classes of graphs, mean and deviation over ten folds
  anyorder train graph edges.csv --node-table nodes.csv --target label
  anyorder train graph friends.tsv --level links                which pairs are linked
  anyorder predict runs/graph/mutag-ours --input NEW            apply a model
"""


def add_predict(parser: argparse.ArgumentParser) -> None:
    """What ``predict`` takes for these models."""
    parser.add_argument("--node-table", type=Path, metavar="FILE", help="graphs: table of nodes, for tables of edges")
    parser.add_argument("--graph-table", type=Path, metavar="FILE", help="graphs: table of graphs, for tables of edges")
    parser.add_argument("--pairs", type=Path, metavar="FILE", help="links: table of pairs to judge (default: all, if few)")


def add_explain(parser: argparse.ArgumentParser) -> None:
    """What ``explain`` takes for these models."""
    parser.add_argument("--input", type=Path, metavar="DATA", help="graphs: data to look at (default: of the training)")
    parser.add_argument("--graph", metavar="NAME", help="graphs: graph to draw, by its name (default: the first)")
    parser.add_argument("--node", metavar="NAME", help="graphs: node to draw the neighbours of, for large graphs")


def add_train(parser: argparse.ArgumentParser) -> None:
    """``anyorder train graph``."""
    describe(parser, _FORMS, EXAMPLE)
    parser.add_argument("data", type=Path, metavar="DATA", help="file or folder of graphs")
    parser.add_argument("--level", choices=("graphs", "nodes", "links"), help="what is asked about (default: as DATA says)")
    parser.add_argument("--target", nargs="+", default=[], metavar="COLUMN", help="what to predict (default: label, y, ...)")
    parser.add_argument(
        "--goal", choices=("classification", "regression"), help="kind of targets (default: as their values suggest)"
    )
    parser.add_argument("--ignore", nargs="+", default=[], metavar="COLUMN", help="columns that are no input")
    tables = parser.add_argument_group("tables")
    tables.add_argument("--node-table", type=Path, metavar="FILE", help="table of nodes")
    tables.add_argument("--graph-table", type=Path, metavar="FILE", help="table of graphs")
    tables.add_argument("--ends", nargs=2, default=[], metavar="COLUMN", help="columns of an edge's ends (default: guessed)")
    tables.add_argument("--node", default="", metavar="COLUMN", help="column of a node's name (default: guessed)")
    tables.add_argument("--graph", default="", metavar="COLUMN", help="column of the graph, for many (default: guessed)")
    tables.add_argument("--directed", action="store_true", help="edges of tables have a direction")
    tables.add_argument(
        "--duplicates",
        choices=("refuse", "sum", "first"),
        default="refuse",
        help="what to do with repeated edges (default: refuse)",
    )
    parts = parser.add_argument_group("parts")
    add_shares(parts, "rows")  # type: ignore[arg-type]
    parts.add_argument("--split", default="", metavar="NAME", help="column with train, valid, test, or NPZ file of masks")
    parts.add_argument("--valid-data", type=Path, metavar="DATA", help="graphs to validate on")
    parts.add_argument("--test-data", type=Path, metavar="DATA", help="graphs to test on")
    model = parser.add_argument_group("model")
    model.add_argument("--model", choices=("ours", "gin", "gcn", "mlp"), default="ours", help="model (default: ours)")
    kinds = ("none", "degree", "walk", "laplacian")
    model.add_argument(
        "--positions", nargs="+", choices=kinds, help="positions of nodes (default: degree walk without features)"
    )
    model.add_argument("--channels", type=count, metavar="N", help="width (default: after the number of rows)")
    model.add_argument("--layers", type=count, metavar="N", help="depth (default: 3 for graphs, else 2)")
    model.add_argument(
        "--dropout", type=float, metavar="SHARE", help="dropout (default: 0.1; 0.5 for few rows with many features)"
    )
    model.add_argument("--learning-rate", type=float, metavar="RATE", help="learning rate (default: 2e-3)")
    model.add_argument("--batch-size", type=count, metavar="N", help="graphs in a step (default: 32, 64 for many)")
    model.add_argument("--patience", type=count, default=40, metavar="N", help="epochs without gain (default: 40)")
    add_options(parser, "graph", epochs=200)
    parser.set_defaults(run=_train)


def _train(args: argparse.Namespace) -> int:
    for path in (args.data, args.node_table, args.graph_table, args.valid_data, args.test_data):
        if path is not None and not path.exists():
            raise FileNotFoundError(f"there is no file or folder {path}")
    from anyorder.experiments.graphs.session import run_command

    return run_command(args)
