"""Triangulations as pictures: which edges a model gets right, misses and makes up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyorder.experiments.set_to_graph.delaunay_task import Delaunay
from anyorder.experiments.set_to_graph.sets import SetSample, SetShapes
from anyorder.experiments.set_to_graph.task import StandardisedSets, predict_edges
from anyorder.experiments.set_to_graph.triangulations import DelaunaySets
from anyorder.extras import require
from anyorder.files import replacing
from anyorder.training.checkpoints import load_model, load_run
from anyorder.training.jobs import JOB, Job

Edges = NDArray[np.int64]
SHIPPED = Path(__file__).parents[2] / "checkpoints"
KINDS = {"right": ("#4b5563", "-", 1.0), "missed": ("#2f6db5", (0, (3, 2)), 1.6), "wrong": ("#d9480f", "-", 1.6)}
FORMATS = (".png", ".svg", ".pdf")


@dataclass(frozen=True, eq=False)
class Panel:
    """A set with its true and its predicted edges (m, 2), i < j."""

    title: str
    points: NDArray[np.float32]
    true: Edges
    predicted: Edges

    def edges(self) -> dict[str, Edges]:
        """The edges that are right, missed and wrong.

        >>> square, two = np.zeros((3, 2)), np.array([[0, 1], [0, 2]])
        >>> {kind: edges.tolist() for kind, edges in Panel("", square, two, np.array([[0, 2], [1, 2]])).edges().items()}
        {'right': [[0, 2]], 'missed': [[0, 1]], 'wrong': [[1, 2]]}
        """
        true, predicted = ({tuple(edge) for edge in edges.tolist()} for edges in (self.true, self.predicted))
        kinds = {"right": true & predicted, "missed": true - predicted, "wrong": predicted - true}
        return {kind: np.array(sorted(edges), dtype=np.int64).reshape(-1, 2) for kind, edges in kinds.items()}

    @property
    def f1(self) -> float:
        """2 right / (true + predicted), 0 where there are no edges."""
        total = len(self.true) + len(self.predicted)
        return 2 * len(self.edges()["right"]) / total if total else 0.0


def panels_of(folder: Path, sets: Sequence[SetSample]) -> list[Panel]:
    """What the model of a folder says of some sets."""
    run, model = load_model(folder)
    shapes = load_run(folder)[1]
    if not isinstance(run.task, Delaunay) or not isinstance(shapes, SetShapes):
        raise ValueError(f"{folder} holds a model of {type(run.task).__name__}, expected one of Delaunay triangulations")
    known = StandardisedSets(sets, shapes)
    predicted = list(predict_edges(model, [known[number] for number in range(len(known))]))
    title = Job.read(folder)[0].row if (folder / JOB).exists() else type(run.model).__name__
    return [Panel(title, each.points, each.edges, edges) for each, edges in zip(sets, predicted, strict=True)]


def draw_models(folders: Sequence[Path], output: Path, *, num_sets: int = 1, seed: int = 0) -> list[list[Panel]]:
    """Draw what each model says of the same test sets, of the sizes that the first was trained on: a row per set."""
    if output.suffix not in FORMATS:
        raise ValueError(f"{output}: expected a file ending in {', '.join(FORMATS)}")
    folders = list(folders) or sorted(path for path in SHIPPED.glob("delaunay-*") if path.is_dir())
    if not folders:
        raise FileNotFoundError("no trained model comes with this installation: name the folder of a run")
    task = load_run(folders[0])[0].task
    if not isinstance(task, Delaunay):
        raise ValueError(f"{folders[0]} holds a model of {type(task).__name__}, expected one of Delaunay triangulations")
    sets: DelaunaySets = task.sets(num_sets, part=2, seed=seed)
    rows = list(zip(*(panels_of(folder, list(sets)) for folder in folders), strict=True))
    draw_panels(rows, output)
    return [list(row) for row in rows]


def draw_panels(rows: Sequence[Sequence[Panel]], output: Path) -> None:
    """One picture: a row per set, a column per model."""
    require("matplotlib", "plot").use("Agg")
    pyplot = require("matplotlib.pyplot", "plot")
    width = max(len(row) for row in rows)
    figure, axes = pyplot.subplots(len(rows), width, figsize=(4.4 * width, 4.6 * len(rows) + 0.4), squeeze=False)
    for row, places in zip(rows, axes, strict=True):
        for panel, axis in zip(row, places, strict=True):
            _draw(panel, axis)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(KINDS), frameon=False)
    figure.tight_layout(rect=(0, 0.35 / figure.get_figheight(), 1, 1))
    with replacing(output) as temporary:
        figure.savefig(temporary, dpi=150)
    pyplot.close(figure)


def _draw(panel: Panel, axis: Any) -> None:
    collections = require("matplotlib.collections", "plot")
    for kind, edges in panel.edges().items():
        colour, style, width = KINDS[kind]
        lines = panel.points[edges]
        axis.add_collection(
            collections.LineCollection(lines, colors=colour, linestyles=[style], linewidths=width, label=f"{kind}")
        )
    axis.scatter(*panel.points.T, s=14, color="#22262e", zorder=3)
    axis.set_title(f"{panel.title}: F1 {panel.f1:.3f}, {len(panel.points)} points")
    axis.set_aspect("equal")
    axis.set_xticks([])
    axis.set_yticks([])
