"""Which reader a path is for: by what a folder holds, or by the ending of a file."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path

from anyorder.errors import reading
from anyorder.experiments.graphs.readers.arrays import is_saved, load_arrays, read_arrays
from anyorder.experiments.graphs.readers.geom import is_geom, read_geom
from anyorder.experiments.graphs.readers.names import TABLES
from anyorder.experiments.graphs.readers.networkx_files import FORMATS, read_networkx_file
from anyorder.experiments.graphs.readers.tables import TableNames, read_tables
from anyorder.experiments.graphs.readers.tu import read_tu, tu_name
from anyorder.experiments.graphs.values import Duplicates, GraphSet

ARRAYS = (".npz", ".safetensors")
_PAIR = ("edges", "nodes", "graphs")


@dataclass(frozen=True)
class ReadOptions:
    """What a user says of their files."""

    nodes: Path | None = None
    graphs: Path | None = None
    names: TableNames = field(default_factory=TableNames)
    directed: bool = False
    duplicates: Duplicates = "refuse"


def read_graphs(path: Path, options: ReadOptions | None = None) -> GraphSet:
    """The graphs of a file or folder."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file or folder {path}")
    with reading(path), warnings.catch_warnings():
        warnings.simplefilter("error")  # numbers that do not fit, files without data
        warnings.filterwarnings("ignore", module="networkx")  # a key without a type is text
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.filterwarnings("ignore", category=FutureWarning)
        return _read(path, options or ReadOptions())


def _read(path: Path, options: ReadOptions) -> GraphSet:
    if path.is_dir():
        return _folder(path, options)
    ending = path.suffix.lower()
    if ending in FORMATS:
        return read_networkx_file(path, duplicates=options.duplicates)
    if ending in ARRAYS:
        return load_arrays(path) if ending == ".npz" and is_saved(path) else read_arrays(path, duplicates=options.duplicates)
    if ending in (".pt", ".pth", ".pkl", ".pickle"):
        raise ValueError(f"{path} is a pickle, which may run code: save the arrays as .npz or .safetensors instead")
    if ending in TABLES:
        return _tables(path, options)
    known = sorted({*FORMATS, *ARRAYS, *TABLES})
    raise ValueError(f"{path}: unknown format {ending or 'without ending'}: expected a folder or one of {', '.join(known)}")


def _folder(path: Path, options: ReadOptions) -> GraphSet:
    if tu_name(path) is not None:
        return read_tu(path, duplicates=options.duplicates)
    if is_geom(path):
        return read_geom(path)
    tables = {path_.stem.lower(): path_ for path_ in sorted(path.iterdir()) if path_.suffix.lower() in TABLES}
    if "edges" in tables:
        nodes, graphs = options.nodes or tables.get("nodes"), options.graphs or tables.get("graphs")
        return _tables(tables["edges"], ReadOptions(nodes, graphs, options.names, options.directed, options.duplicates))
    raise ValueError(
        f"{path}: expected a TU folder (NAME_A.txt, NAME_graph_indicator.txt), a Geom-GCN folder (out1_graph_edges.txt) "
        f"or tables named {', '.join(_PAIR)}"
    )


def _tables(path: Path, options: ReadOptions) -> GraphSet:
    return read_tables(
        path,
        options.nodes,
        graphs=options.graphs,
        names=options.names,
        directed=options.directed,
        duplicates=options.duplicates,
    )
