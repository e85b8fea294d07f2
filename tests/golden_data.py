"""Small data of every family of recipes, made from a seed: their tasks, without a file from anywhere."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from anyorder.training.run import Run, Splits, Task


def small(run: Run, family: str, folder: Path) -> tuple[Task, Splits]:
    """The task of a recipe on small data, and what it loads."""
    if family.startswith("jets/"):
        return run.task, jets(run)
    task = MADE.get(family, _smaller)(run, folder)
    return task, task.load(seed=0, data_dir=folder)


def _smaller(run: Run, folder: Path) -> Task:
    """Tasks that make their own data: fewer of them."""
    sizes = {"train_sets": 40, "valid_sets": 4, "test_sets": 4, "graphs": 60, "least_nodes": 6, "most_nodes": 8}
    sizes |= {"min_points": 7, "max_points": 7}
    return replace(run.task, **{name: size for name, size in sizes.items() if hasattr(run.task, name)})


def molecules(run: Run, folder: Path) -> Task:
    from anyorder.experiments.molecules.task import OwnMolecules

    ends = ("O", "N", "(=O)C", "c1ccccc1", "#N", "S(=O)(=O)C", "C(F)(F)Cl", "c1ccncc1", "OC(C)C", "C1CC1", "[N+](=O)[O-]")
    texts = [f"{'C' * (1 + n % 7)}{ends[n % 11]}" for n in range(60)]
    rows = [f"{smiles},{len(smiles) + n % 3 / 2}" for n, smiles in enumerate(texts)]
    (folder / "molecules.csv").write_text("\n".join(["smiles,gap", *rows]))
    return OwnMolecules(data=str(folder / "molecules.csv"), targets=("gap",))


def jets(run: Run) -> Splits:
    from anyorder.experiments.set_to_graph.jet_task import JetSets, JetShapes, compressed
    from anyorder.experiments.set_to_graph.jets import JetSample, normalisation

    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 9, 40)
    features = rng.normal(size=(int(sizes.sum()), 10)).astype(np.float32)
    features[:, 4] = np.abs(features[:, 4]) + 1.0  # transverse momentum
    vertex = rng.integers(0, 3, len(features)).astype(np.int32)
    sample = JetSample(features, vertex, np.concatenate([[0], sizes.cumsum()]), np.array([0, 4, 5] * 14, np.int32)[:40])
    task: Any = run.task
    if task.compress:
        sample = replace(sample, features=compressed(sample.features))
    constants = normalisation(sample)
    mean, deviation = tuple(constants.mean), tuple(constants.deviation)
    shapes = JetShapes(channels=10, max_points=int(sizes.max()), mean=mean, deviation=deviation, compressed=task.compress)
    held = JetSets(sample, constants)
    return Splits(held, held, held, shapes)


def tuples(run: Run, folder: Path) -> Task:
    from anyorder.experiments.hyperedges.task import TableHyperedges

    rows = [f"u{n % 13},i{n * n % 29},t{n % 5}" for n in range(400)]
    (folder / "tuples.csv").write_text("\n".join(["user,item,tag", *rows]))
    return TableHyperedges(path=str(folder / "tuples.csv"), columns=("user", "item", "tag"))


def nodes(run: Run, folder: Path) -> Task:
    from anyorder.experiments.hypergraphs.own import OwnNodes

    rng = np.random.default_rng(0)
    incidences = [{"edge": e, "node": int(n)} for e in range(30) for n in rng.choice(40, 2 + e % 3, replace=False)]
    held = [{"node": n, "attrs": {"a": n % 7 / 7, "b": n % 3 - 1.0, "label": "xyz"[n % 3]}} for n in range(40)]
    (folder / "graph.json").write_text(json.dumps({"incidences": incidences, "nodes": held}))
    return OwnNodes(hif=str(folder / "graph.json"))


def sets_of_nodes(run: Run, folder: Path) -> Task:
    from anyorder.experiments.hypergraphs.prediction.task import OwnEdgeSets

    rings = [[(start + step) % 30 for step in range(2 + start % 3)] for start in range(90)]
    (folder / "edges.txt").write_text("\n".join(" ".join(f"n{node}" for node in ring) for ring in rings))
    return OwnEdgeSets(edges=str(folder / "edges.txt"))


def graphs(level: str) -> Any:
    """Many small graphs, or one, as tables."""

    def made(run: Run, folder: Path) -> Task:
        from anyorder.experiments.graphs.own import OwnGraphs, resolve

        rng = np.random.default_rng(0)
        count, size = (24, 6) if level == "graphs" else (1, 60)
        place = folder / level
        place.mkdir()
        pairs = {(g, *sorted(rng.choice(size, 2, replace=False).tolist())) for g in range(count) for _ in range(2 * size)}
        ends = [f"{a + g * size},{b + g * size}" for g, a, b in sorted(pairs)]
        (place / "edges.csv").write_text("\n".join(["source,target", *ends]))
        names = [f"{g * size + n},g{g},{n % 3 / 3:.3f},{'xy'[n % 2]}" for g in range(count) for n in range(size)]
        (place / "nodes.csv").write_text("\n".join(["node,graph,w,kind", *names]))
        if level == "graphs":
            (place / "graphs.csv").write_text("\n".join(["graph,label", *(f"g{g},{'ab'[g % 2]}" for g in range(count))]))
        task = OwnGraphs(data=str(place))
        targets = {"graphs": ("label",), "nodes": ("kind",), "links": ()}[level]
        return resolve(task, task.read(None), level=level, targets=targets)[0]

    return made


MADE: dict[str, Any] = {
    "molecules/qm9-gap": molecules,
    "hyperedges/gps": tuples,
    "hypergraphs/cora": nodes,
    "hyperedge-sets/cora": sets_of_nodes,
    "graphs/mutag": graphs("graphs"),
    "graphs/wisconsin": graphs("nodes"),
    "graphs/wisconsin-links": graphs("links"),
}
