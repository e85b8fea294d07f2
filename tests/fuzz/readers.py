"""Every reader of files, with small whole files to begin from and the mutators that suit them."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fuzz import mutators as change
from fuzz.more_readers import more_readers, unsealed
from fuzz.reader import Reader


def npz(**arrays: Any) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def all_readers(work: Path) -> list[Reader]:
    """All of them; trainings of a second make the files of models and runs."""
    return [
        *graphs(),
        *own_graphs(),
        *tables(),
        *molecules(work),
        *published(),
        *archives(),
        *runs(work),
        *settings(),
        *jets(work),
        *more_readers(work),
    ]


HIF = {
    "network-type": "undirected",
    "incidences": [{"edge": n // 3, "node": f"n{n % 7}", "weight": 1.5} for n in range(12)],
    "nodes": [{"node": f"n{n}", "attrs": {"a": [1.0, n], "label": "xy"[n % 2]}} for n in range(7)],
    "edges": [{"edge": n, "weight": 2.0, "attrs": {"b": n}} for n in range(4)],
}


def graphs() -> list[Reader]:
    from anyorder.convert import from_hif_by_size, read_npz
    from anyorder.experiments.hypergraphs.files import read_edge_list, read_hif_hypergraph

    document = json.dumps(HIF).encode()
    features = npz(
        tuples=np.array([[0, 1], [1, 0], [2, 2]]),
        values=np.ones((3, 2), np.float32),
        num_nodes=np.array(3),
        node_graph=np.array([0, 0, 1]),
        num_graphs=np.array(2),
    )
    lists = {"e.txt": b"a,b,c\nc,d\n# no\nd,e,a\n", "f.csv": b"node,x,y\na,1,2\nb,1,0\nc,1,3\nd,3,4\ne,0,1\n"}
    lists["l.csv"] = b"node,label\na,x\nb,y\nc,x\n"
    return [
        Reader("features, NPZ", {"x.npz": features}, change.NPZ, lambda folder: read_npz(folder / "x.npz")),
        Reader("HIF", {"x.json": document}, change.JSON, lambda folder: from_hif_by_size(folder / "x.json", edge="b")),
        Reader(
            "HIF, gzip",
            {"x.json.gz": gzip.compress(document)},
            change.any_of(change.inside_gzip(change.JSON), change.mutate_bytes),
            lambda folder: read_hif_hypergraph(folder / "x.json.gz"),
        ),
        Reader(
            "hyperedges as lines, features and labels",
            lists,
            change.TABLE,
            lambda folder: read_edge_list(folder / "e.txt", features=folder / "f.csv", labels=folder / "l.csv"),
        ),
    ]


def tables() -> list[Reader]:
    from anyorder.experiments.hyperedges.data import read_hyperedges
    from anyorder.experiments.hyperedges.tables import read_table
    from anyorder.experiments.hyperedges.vocabulary import Vocabulary
    from anyorder.experiments.set_to_graph.files import read_sets
    from anyorder.experiments.set_to_graph.triangulations import StoredSets

    rows = [(f"u{n % 5}", f"i{n % 7}", f"{1 + n % 3}") for n in range(20)]
    text = "\n".join(["user,item,w", *(",".join(row) for row in rows)]).encode()
    words = json.dumps({"format": "anyorder vocabulary 1", "columns": {"a": ["x", "y"], "b": ["z", "w é"]}}).encode()
    tuples = {
        "train_data.npz": npz(train_data=np.array([[0, 0], [1, 2]]), nums_type=np.array([2, 3])),
        "test_data.npz": npz(test_data=np.array([[1, 0]]), nums_type=np.array([2, 3])),
    }
    sets = npz(
        features=np.ones((5, 2)), sizes=np.array([3, 2]), edges=np.array([[0, 1], [1, 0]]), edge_counts=np.array([1, 1])
    )
    stored = npz(
        points=np.ones((5, 2), np.float32),
        sizes=np.array([3, 2]),
        edges=np.array([[0, 1], [0, 1]], np.uint8),
        edge_counts=np.array([1, 1]),
    )

    def table(folder: Path) -> Any:
        return read_table(folder / "t.csv", ("user", "item"), weight="w")

    found = [
        Reader("vocabulary", {"v.json": words}, change.JSON, lambda folder: Vocabulary.load(folder / "v.json")),
        Reader(
            "table of tuples", {"t.csv": text}, change.TABLE, lambda f: read_table(f / "t.csv", ("user", "item"), weight="w")
        ),
        Reader("tuples, NPZ", tuples, change.NPZ, read_hyperedges),
        Reader("sets, NPZ", {"s.npz": sets}, change.NPZ, lambda folder: read_sets(folder / "s.npz")),
        Reader("generated sets, NPZ", {"d.npz": stored}, change.NPZ, lambda f: list(StoredSets.load(f / "d.npz"))),
    ]
    return [*found, parquet_sets()]


def parquet_sets() -> Reader:
    import pyarrow
    from pyarrow import parquet

    from anyorder.experiments.set_to_graph.files import read_sets, stream_sets

    out = io.BytesIO()
    points = [[[0.5, 1.0], [2.0, 3.0], [1.0, 1.0]], [[1.0, 2.0], [0.0, 1.0]]]
    parquet.write_table(pyarrow.table({"features": points, "edges": [[[0, 1]], []]}), out)

    def read(folder: Path) -> Any:
        return read_sets(folder / "s.parquet"), list(stream_sets(folder / "s.parquet"))

    return Reader("sets, Parquet", {"s.parquet": out.getvalue()}, change.mutate_bytes, read)


def molecules(work: Path) -> list[Reader]:
    from anyorder.experiments.molecules.data import BuildOptions, MoleculeStore, MoleculeTable, Target, build_store
    from anyorder.experiments.molecules.labels import find_labels
    from anyorder.experiments.molecules.sources import load_split

    text = b"smiles,gap,kind\nCCO,1.5,a\nc1ccccc1,2.5,b\nC=O,0.5,a\n[Na+],3,b\nN#N,1,a\n"
    (work / "m.csv").write_bytes(text)
    options = BuildOptions(workers=0, shard_rows=3)
    build_store(MoleculeTable(work / "m.csv", "smiles", (Target("gap"),)), work / "store", options, progress=False)
    store = {path.name: path.read_bytes() for path in (work / "store").iterdir() if path.is_file() and path.name != ".lock"}
    out = io.BytesIO()
    torch.save({"train": np.arange(3), "valid": np.array([3]), "test-dev": np.array([4])}, out)

    def table(folder: Path) -> Any:
        find_labels(MoleculeTable(folder / "m.csv", "smiles", (Target("kind"),)))
        return list(MoleculeTable(folder / "m.csv", "smiles", (Target("gap"),), keep_missing=True).rows())

    def opened(folder: Path) -> Any:
        whole = MoleculeStore(folder)
        return [(whole[n], whole.smiles(n)) for n in range(len(whole))], whole.targets(), whole.rows(), whole.num_atoms()

    def unchecked(folder: Path) -> Any:
        return MoleculeStore(folder, verify=False).targets()

    return [
        Reader("table of molecules", {"m.csv": text}, change.TABLE, table),
        Reader("table of molecules, gzip", {"m.csv": gzip.compress(text)}, change.inside_gzip(change.TABLE), table),
        Reader("molecule store", store, change.any_of(change.mutate_json, change.mutate_npy, change.mutate_bytes), opened),
        Reader("molecule store, unchecked", store, change.any_of(change.mutate_json, change.mutate_npy), unchecked),
        Reader("split of torch", {"split_dict.pt": out.getvalue()}, change.ZIP, lambda f: load_split(f / "split_dict.pt")),
    ]


def published() -> list[Reader]:
    from anyorder.errors import reading
    from anyorder.experiments.hypergraphs import published as known

    feature = {"feat_shape": np.array([3, 4]), "feat_indptr": np.array([0, 1, 2, 3]), "feat_indices": np.array([0, 1, 3])}
    arrays = {**feature, "feat_data": np.ones(3), "members": np.array([0, 1, 2]), "indptr": np.array([0, 2, 3])}
    splits = {f"split{n}_train": np.array([0]) for n in range(1, 11)}
    citations = npz(num_nodes=np.array(3), labels=np.array([0, 1, 0]), **arrays, **splits)
    content = gzip.compress(b"0 1.0 0 1\n1 0 1 2\n2 1 1 1\n3 0 0 0\n")
    edges = gzip.compress(b"0 3\n1 3\n2 3\n")
    lists = {
        "hyperedges-case.txt.gz": gzip.compress(b"1,2,3\n2,3\n"),
        "node-labels-case.txt.gz": gzip.compress(b"1\n2\n1\n"),
        "label-names-case.txt.gz": gzip.compress(b"left\nright\n"),
    }

    def reads(read: Callable[[Path, int], Any], name: str = "") -> Callable[[Path], Any]:
        def through(folder: Path) -> Any:
            path = folder / name if name else folder
            with reading(path, "the published hypergraph"), np.errstate(over="ignore"):
                return read(path, 3)

        return through

    packed = change.any_of(change.inside_gzip(change.mutate_bytes), change.mutate_bytes)
    return [  # folders are called as their files are: case
        Reader("published, NPZ", {"c.npz": citations}, change.NPZ, reads(known._read_citations, "c.npz")),
        Reader("published, text", {"case.content.gz": content, "case.edges.gz": edges}, packed, reads(known._read_content)),
        Reader("published, lists", lists, packed, reads(known._read_lists)),
    ]


def archives() -> list[Reader]:
    from anyorder.datasets.archives import unpack
    from anyorder.datasets.verify import recorded

    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for name in ("a/b.txt", "c" * 120, "d"):
            info = tarfile.TarInfo(name)
            info.size = 600
            archive.addfile(info, io.BytesIO(bytes(600)))
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a/b.txt", bytes(500))
        packed.writestr("c", b"x")
    raw = plain.getvalue()
    kinds = {"x.tar": raw, "x.tar.gz": gzip.compress(raw), "x.zip": zipped.getvalue(), "x.csv.gz": gzip.compress(b"a,b\n")}
    ways = {"x.tar.gz": change.any_of(change.inside_gzip(change.mutate_bytes), change.mutate_bytes), "x.zip": change.ZIP}

    def reader(name: str) -> Reader:
        def read(folder: Path) -> Any:
            return unpack(folder / name, folder / "out", max_bytes=10**7, max_members=100)

        return Reader(f"archive {name[1:]}", {name: kinds[name]}, ways.get(name, change.mutate_bytes), read)

    sums = "".join(f"{'0a' * 32}  file{n}\n" for n in range(3)).encode()
    return [*map(reader, kinds), Reader("checksums", {"SHA256SUMS": sums}, change.TABLE, recorded)]


def runs(work: Path) -> list[Reader]:
    from anyorder.experiments import find_table
    from anyorder.training.checkpoints import load_model, load_run
    from anyorder.training.fit import carry_out
    from anyorder.training.jobs import Job
    from anyorder.training.records import Record, read_records
    from anyorder.training.session import summary
    from anyorder.training.states import read_state
    from anyorder.training.tables import render
    from small_runs import QUIET, chains

    carry_out(chains("gcn"), work / "run", QUIET)
    files = {name: (work / "run" / name).read_bytes() for name in ("record.json", "job.json", "config.json")}
    weights, state = ((work / "run" / name).read_bytes() for name in ("model.safetensors", "last.ckpt"))
    loose = state[: -2 - 71] + b"\0\0"
    bare = {name: unsealed(files[name]) for name in ("job.json", "config.json")}

    def record(folder: Path) -> Any:
        return summary(Record.read(folder / "record.json")), render(find_table("chains"), read_records(folder))

    def model(folder: Path) -> Any:
        return load_model(folder)

    whole = {"config.json": bare["config.json"], "model.safetensors": weights}
    mixed = change.any_of(change.mutate_json, change.mutate_header, change.mutate_bytes)
    return [
        Reader("record", {"record.json": files["record.json"]}, change.JSON, record),
        Reader("job", bare, change.JSON, Job.read),
        Reader("configuration", {"config.json": files["config.json"]}, change.JSON, load_run),
        Reader("configuration, no checksum", {"config.json": bare["config.json"]}, change.JSON, load_run),
        Reader("model", whole, mixed, model),
        Reader("training state", {"last.ckpt": state}, change.ZIP, lambda folder: read_state(folder / "last.ckpt")),
        Reader("training state, no checksum", {"last.ckpt": loose}, change.ZIP, lambda f: read_state(f / "last.ckpt")),
    ]


def settings() -> list[Reader]:
    from anyorder.training.config import override
    from small_runs import chains

    run = chains("ours-s-phi").run
    lines = b"schedule.epochs=3\nmodel.kernel=RandomFeatures(redraw=2)\noptimiser.clip=0.1\nmodel.layers=4\nseed=1"

    def read(folder: Path) -> Any:
        for line in (folder / "settings.txt").read_bytes().decode(errors="replace").split("\n"):
            override(run, line)

    return [Reader("settings", {"settings.txt": lines}, change.TABLE, read, names_file=False)]


def jets(work: Path) -> list[Reader]:
    """Slow to decode, and apart for that."""
    from anyorder.experiments.set_to_graph.jets import JetSample, read_jets, write_jets

    features = np.ones((5, 10), np.float32)
    sample = JetSample(features, np.zeros(5, np.int32), np.array([0, 2, 5]), np.array([5, 0], np.int32))
    write_jets(work / "jets.root", sample)
    raw = (work / "jets.root").read_bytes()
    return [Reader("jets, ROOT", {"jets.root": raw}, change.mutate_bytes, lambda folder: read_jets(folder / "jets.root"))]


def own_graphs() -> list[Reader]:
    """Graphs in the forms of others."""
    from anyorder.experiments.graphs.readers.anything import read_graphs

    pairs = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])
    arrays = npz(edge_index=pairs, x=np.ones((3, 2), np.float32), y=np.arange(3), batch=np.zeros(3, int))
    nodes = [{"id": n, "a": 1.5 * n, "label": "xy"[n % 2]} for n in range(4)]
    links = [{"source": n, "target": n + 1, "w": 1.0} for n in range(3)]
    linked = json.dumps({"directed": False, "multigraph": False, "graph": {}, "nodes": nodes, "links": links}).encode()
    gml = b'graph [\n node [ id 0 label "a" w 1.5 ]\n node [ id 1 label "b" w 2 ]\n edge [ source 0 target 1 v 3 ]\n]\n'
    graphml = (
        b'<?xml version="1.0"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="d0" for="node" '
        b'attr.name="w" attr.type="double"/><graph edgedefault="undirected"><node id="a"><data key="d0">1.5</data></node>'
        b'<node id="b"><data key="d0">2</data></node><edge source="a" target="b"/></graph></graphml>'
    )
    tables = {"edges.csv": b"source,target,w\na,b,1\nb,c,2\n", "nodes.csv": b"node,x,kind\na,1,p\nb,2,q\nc,3,p\n"}
    tu = {
        "D_A.txt": b"1, 2\n2, 1\n3, 4\n4, 3\n",
        "D_graph_indicator.txt": b"1\n1\n2\n2\n",
        "D_graph_labels.txt": b"0\n1\n",
        "D_node_attributes.txt": b"0.5, 1\n1, 2\n3, 1\n0, 0\n",
    }
    geom = {
        "out1_graph_edges.txt": b"node_id\tnode_id\n0\t1\n1\t2\n",
        "out1_node_feature_label.txt": b"node_id\tfeature\tlabel\n0\t0,1\t0\n1\t1,0\t1\n2\t1,1\t0\n",
        "split_0.npz": npz(**{f"{part}_mask": np.arange(3) == n for n, part in enumerate(("train", "val", "test"))}),
    }
    folders = {"tables": (tables, change.TABLE), "TU folder": (tu, change.TABLE), "Geom-GCN folder": (geom, change.NPZ)}
    files = {
        "x.npz": (arrays, change.NPZ),
        "x.json": (linked, change.JSON),
        "x.gml": (gml, change.mutate_bytes),
        "x.graphml": (graphml, change.mutate_bytes),
    }

    def reader(name: str) -> Reader:
        return Reader(
            f"graphs, {name[2:]}", {name: files[name][0]}, files[name][1], lambda folder: read_graphs(folder / name)
        )

    return [*map(reader, files), *(Reader(f"graphs, {name}", *held, read_graphs) for name, held in folders.items())]
