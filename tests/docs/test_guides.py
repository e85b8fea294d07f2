"""The commands of the guides are run as they stand, in their order, on small files with the names that the pages use."""

from __future__ import annotations

import gzip
import itertools
import json
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

from anyorder.cli import main

DOCS = Path(__file__).parents[2] / "docs"
SHELL = re.compile(r"^```(?:bash|console|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
ELSEWHERE = ("run ", "tune ", "bench ", "data ", "draw delaunay runs", "predict runs/jets", "collect ", "plot ", "table ")
"""Experiments, measurements and downloads: tests of their own run these, on small data."""
TRAINED = "train "


def graphs(folder: Path) -> None:
    for name in ("MUTAG", "NEW"):
        (folder / name).mkdir()
        edges, owner, labels = [], [], []
        for graph in range(12):
            first, size = len(owner), 4 + graph % 3
            ring = [(first + n, first + (n + 1) % size) for n in range(size if graph % 2 else size - 1)]
            edges += [pair for a, b in ring for pair in ((a, b), (b, a))]
            owner += [graph] * size
            labels.append(graph % 2)
        texts = {"A": [f"{a + 1}, {b + 1}" for a, b in edges], "graph_indicator": [str(each + 1) for each in owner]}
        texts["graph_labels"] = [str(each) for each in labels]
        for part, lines in texts.items():
            (folder / name / f"{name}_{part}.txt").write_text("\n".join(lines) + "\n")


def hyperedges(folder: Path) -> None:
    (folder / "candidates.csv").write_text("user,item,tag\nuser1,item1,red\nuser2,item7,blue\n")
    facts = [f"bought,{who},{what},{where}" for who, what, where in _some(("ann", "bob", "cai"), ["lamp", "cup", "pen"])]
    facts += [f"lives,{who},{where}," for who, where in itertools.product(("ann", "bob", "cai"), ("paris", "rome"))]
    (folder / "facts.csv").write_text("\n".join(["predicate,who,what,where", *facts]) + "\n")
    (folder / "asked.txt").write_text("bought\tann\t?\tparis\nbought\tnobody\t?\tparis\n")
    (folder / "jf17k").mkdir()
    rows = ["\t".join(row.rstrip(",").split(",")) for row in facts]
    for part, some in (("train", rows), ("valid", rows[:4]), ("test", rows[4:8])):
        (folder / "jf17k" / f"{part}.txt").write_text("\n".join(some) + "\n")


def _some(people: tuple[str, ...], things: list[str]) -> list[tuple[str, str, str]]:
    every = itertools.product(people, things, ("paris", "rome", "oslo"))
    return [row for n, row in enumerate(every) if n % 3]


def hypergraphs(folder: Path) -> None:
    edges = [[f"n{a}", f"n{(a + 1) % 12}", f"n{(a + 5) % 12}"][: 2 + a % 2] for a in range(12)]
    lines = "\n".join(" ".join(edge) for edge in edges) + "\n"
    school = "hyperedges-contact-primary-school-classes.txt", "node-labels-contact-primary-school-classes.txt"
    for name in ("edges.txt", "other.txt", "hyperedges.txt"):
        (folder / name).write_text(lines)
    numbers = [[str(1 + int(node[1:])) for node in edge] for edge in edges]
    (folder / school[0]).write_text("\n".join(map(",".join, numbers)) + "\n")
    (folder / school[1]).write_text("\n".join(str(1 + a % 2) for a in range(12)) + "\n")
    (folder / "sets.txt").write_text("n0 n1\nn0 n1 n7\n")
    (folder / "labels.csv").write_text("\n".join(["node,label", *(f"n{a},{'xy'[a % 2]}" for a in range(12))]))
    rows = "\n".join(["node,age,height", *(f"n{a},{20 + a},{1.5 + a / 50}" for a in range(12))])
    for name in ("features.csv", "other.csv"):
        (folder / name).write_text(rows)
    nodes = [{"node": f"n{a}", "attrs": {"age": a, "team": "xy"[a % 2]}} for a in range(12)]
    incidences = [{"edge": number, "node": node} for number, edge in enumerate(edges) for node in edge]
    (folder / "graph.json").write_text(json.dumps({"network-type": "undirected", "nodes": nodes, "incidences": incidences}))


def molecules(folder: Path) -> None:
    pytest.importorskip("rdkit")
    smiles = ["C" * n + end for n in range(1, 9) for end in ("O", "N", "F")]
    tables = {
        "my": "gap",
        "new": "gap",
        "esol": "measured log solubility in mols per litre",
        "freesolv": "expt",
        "lipo": "exp",
    }
    for name, target in tables.items():
        text = "\n".join([f"smiles,{target}", *(f"{each},{len(each) + n % 3}" for n, each in enumerate(smiles))])
        (folder / f"{name}.csv").write_text(text)
        with gzip.open(folder / f"{name}.csv.gz", "wt") as file:
            file.write(text)


def set_to_graph(folder: Path) -> None:
    frame = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    points = np.random.default_rng(0).normal(size=(20, 5, 2)).tolist()
    table = frame.table({"features": points, "partition": [[0, 0, 1, 1, 2]] * 20})
    parquet.write_table(table, folder / "stars.parquet")
    parquet.write_table(table.select(["features"]), folder / "new.parquet")


GUIDES = {
    "graphs.md": graphs,
    "hyperedges.md": hyperedges,
    "hypergraphs.md": hypergraphs,
    "molecules.md": molecules,
    "set_to_graph.md": set_to_graph,
}


def lines_of(page: str) -> list[str]:
    """The commands of a page, without comments, and the blocks of Python that write files for them."""
    found = []
    for block in SHELL.findall((DOCS / page).read_text(encoding="utf-8")):
        if "open(" in block:
            found.append(block)
        lines = [line.removeprefix("$ ") for line in block.replace("\\\n", " ").splitlines()]
        found += [shlex.join(shlex.split(line, comments=True)[1:]) for line in lines if line.startswith("anyorder ")]
    return found


@pytest.mark.parametrize("page", GUIDES)
@pytest.mark.filterwarnings("ignore")
def test_the_commands_of_a_guide_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    GUIDES[page](tmp_path)
    carried_out = 0
    for line in lines_of(page):
        if line.startswith("import "):
            exec(compile(line, page, "exec"), {"__name__": "page"})
            continue
        if line.startswith(ELSEWHERE):
            continue
        words = shlex.split(line.replace("$data/", f"{tmp_path}/"))
        if line.startswith(TRAINED):
            shutil.rmtree(tmp_path / "model", ignore_errors=True)  # pages train several into a folder of this name
            words += ["--epochs", "1"]
        assert main(words) == 0, f"anyorder {line}: {capsys.readouterr().err}"
        carried_out += 1
    assert carried_out >= 2
