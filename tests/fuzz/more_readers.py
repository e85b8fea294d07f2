"""Readers of what runs, caches and benchmarks leave behind, and of graphs in further forms."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import socket
from pathlib import Path
from typing import Any

import numpy as np

from fuzz import mutators as change
from fuzz.reader import Reader


def more_readers(work: Path) -> list[Reader]:
    """All of them."""
    return [*more_graphs(work), *saved(work), *judged(), *left_behind(work), *candidates()]


def more_graphs(work: Path) -> list[Reader]:
    """GEXF, safetensors, Parquet, and the file that estimators keep their graphs in."""
    import pandas
    import safetensors.numpy

    from anyorder.experiments.graphs.readers.anything import read_graphs
    from anyorder.experiments.graphs.readers.arrays import from_arrays, save_arrays

    arrays = {"edge_index": np.array([[0, 1, 1, 2], [1, 0, 2, 1]]), "x": np.ones((3, 2), np.float32), "y": np.arange(3)}
    save_arrays(work / "kept.npz", from_arrays(arrays))
    gexf = (
        b'<?xml version="1.0"?><gexf xmlns="http://www.gexf.net/1.2draft" version="1.2"><graph defaultedgetype="undirected">'
        b'<attributes class="node"><attribute id="0" title="w" type="float"/></attributes><nodes><node id="a" label="A">'
        b'<attvalues><attvalue for="0" value="1.5"/></attvalues></node><node id="b" label="B"/></nodes>'
        b'<edges><edge id="0" source="a" target="b" weight="2"/></edges></graph></gexf>'
    )
    edges = io.BytesIO()
    pandas.DataFrame({"source": ["a", "b"], "target": ["b", "c"], "w": [1.0, 2.0]}).to_parquet(edges)
    tensors = safetensors.numpy.save(arrays)
    files = {
        "x.gexf": (gexf, change.mutate_bytes),
        "x.safetensors": (tensors, change.any_of(change.mutate_header, change.mutate_bytes)),
        "x.parquet": (edges.getvalue(), change.mutate_bytes),
        "kept.npz": ((work / "kept.npz").read_bytes(), change.NPZ),
    }

    def reader(name: str) -> Reader:
        kind = "kept by an estimator" if name == "kept.npz" else name[2:]
        return Reader(f"graphs, {kind}", {name: files[name][0]}, files[name][1], lambda folder: read_graphs(folder / name))

    return [reader(name) for name in files]


def saved(work: Path) -> list[Reader]:
    """Modules in folders and the settings of estimators, with and without their checksum."""
    from anyorder import load
    from anyorder.estimators import GraphClassifier
    from anyorder.layers import EquivariantLinear

    EquivariantLinear(order_in=1, order_out=1, channels_in=2, channels_out=2).save(work / "module")
    module = {path.name: path.read_bytes() for path in (work / "module").iterdir()}
    settings = GraphClassifier().get_params(deep=False)
    held = json.dumps({"kind": "GraphClassifier", "settings": settings, "fitted": {"classes": ["a", "b"]}}).encode()
    loose = {**module, "config.json": unsealed(module["config.json"])}
    mixed = change.any_of(change.mutate_json, change.mutate_header, change.mutate_bytes)
    return [
        Reader("module", module, mixed, load),
        Reader("module, no checksum", loose, mixed, load),
        Reader("estimator", {"estimator.json": held}, change.JSON, GraphClassifier.load),
    ]


def unsealed(raw: bytes) -> bytes:
    """A JSON file without its checksum, so that changes come to what reads it."""
    return json.dumps({name: part for name, part in json.loads(raw).items() if name != "sha256"}).encode()


def judged() -> list[Reader]:
    """Pairs of graphs and the verdicts on them."""
    from anyorder.experiments.expressivity.pairs import read_pairs
    from anyorder.experiments.expressivity.task import read_verdicts
    from anyorder.experiments.expressivity.verdicts import Verdict

    out = io.BytesIO()
    np.save(out, np.array(["Bw", "BW", "DQc", "D~{"]))
    verdicts = [Verdict("a", n, 5, 25, "trained", True, False, 3.5, 0.1, 1.0).to_data() for n in range(3)]
    lines = "".join(json.dumps(verdict) + "\n" for verdict in verdicts).encode()
    arrays = change.any_of(change.mutate_npy, change.mutate_bytes)
    return [
        Reader("pairs of graphs, NPY", {"p.npy": out.getvalue()}, arrays, lambda folder: read_pairs(folder / "p.npy", "a")),
        Reader("verdicts", {"v.jsonl": lines}, change.TABLE, lambda folder: read_verdicts(folder / "v.jsonl")),
    ]


def left_behind(work: Path) -> list[Reader]:
    """Locks, parts of downloads and of molecule stores, tables of timings."""
    from anyorder.bench.scaling import Row, read_rows, write_rows
    from anyorder.datasets.download import _Job, _read_validator
    from anyorder.experiments.molecules.data import BuildOptions, MoleculeTable, Target, build_store
    from anyorder.training.lock import LOCK, _holder, _is_alive, holding

    write_rows(work / "rows.csv", [Row("a", 10, "ok", 1, 1, 5, 6, 0.1), Row("b", 20, "memory", message="x")])
    who = {"process": 1, "started": 2.5, "machine": socket.gethostname(), "since": "2026-01-01"}
    begun = json.dumps({"url": "https://x", "validator": "tag"}).encode()
    (work / "left.csv").write_bytes(b"smiles,gap\nCCO,1\nC=O,2\nN#N,3\n")
    table = MoleculeTable(work / "left.csv", "smiles", (Target("gap"),))
    options = BuildOptions(workers=0, shard_rows=2)
    build_store(table, work / "left", options, progress=False)
    store = {path.name: path.read_bytes() for path in (work / "left").iterdir() if path.suffix in (".json", ".npy")}

    def lock(folder: Path) -> None:
        shutil.copytree(folder, folder / "out")
        with (folder / LOCK).open("rb") as file:  # as on a folder without locks
            _is_alive(_holder(file.fileno()) or {}, folder / LOCK, locks_work=False)
        with holding(folder / "out"):
            pass

    def build(folder: Path) -> Any:
        shutil.copytree(folder, folder / "out")
        return len(build_store(table, folder / "out", options, progress=False))

    def part(folder: Path) -> Any:
        return _read_validator(_Job("https://x", folder / "x", None, None, 10, 1.0))

    timings = (work / "rows.csv").read_bytes()
    kinds = change.any_of(change.mutate_json, change.mutate_npy, change.mutate_bytes)
    return [
        Reader("lock", {LOCK: json.dumps(who).encode()}, change.JSON, lock),
        Reader("part of a download", {"x.part.json": begun}, change.JSON, part),
        Reader("molecule store, built again", store, kinds, build),
        Reader("timings", {"rows.csv": timings}, change.TABLE, lambda folder: read_rows(folder / "rows.csv")),
    ]


def candidates() -> list[Reader]:
    """Tuples, sets of nodes and pairs of nodes that a model is asked about."""
    from anyorder.experiments.graphs.predictions import candidates as read_pairs
    from anyorder.experiments.graphs.readers.arrays import from_arrays
    from anyorder.experiments.hyperedges.tables import encode_table
    from anyorder.experiments.hyperedges.vocabulary import Vocabulary
    from anyorder.experiments.hypergraphs.files import read_sets

    known = Vocabulary(("user", "item"), (("u0", "u1"), ("i0", "i1", "i é")))
    tuples = "user,item\nu0,i1\nu1,i é\nu0,i0\n".encode()
    graphs = from_arrays({"edge_index": np.array([[0, 1], [1, 2]]), "num_nodes": np.array(4)})
    packed = change.any_of(change.inside_gzip(change.TABLE), change.mutate_bytes)
    return [
        Reader("tuples to score", {"c.csv": tuples}, change.TABLE, lambda f: list(encode_table(f / "c.csv", known))),
        Reader("tuples to score, gzip", {"c.csv.gz": gzip.compress(tuples)}, packed, lambda f: _scored(f, known)),
        Reader("sets of nodes", {"s.txt": b"a b c\nb c\n# no\nd e\n"}, change.TABLE, lambda f: read_sets(f / "s.txt")),
        Reader("pairs of nodes", {"p.csv": b"a,b\n0,3\n1,2\n"}, change.TABLE, lambda f: _asked(f, read_pairs, graphs)),
    ]


def _scored(folder: Path, known: Any) -> Any:
    from anyorder.experiments.hyperedges.tables import encode_table

    return list(encode_table(folder / "c.csv.gz", known))


def _asked(folder: Path, read: Any, graphs: Any) -> Any:
    return read(graphs, folder / "p.csv")
