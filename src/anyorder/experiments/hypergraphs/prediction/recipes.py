"""Beyond the paper: which sets of nodes are hyperedges. The seed of a run is its split and draws its negatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce

from anyorder.experiments.hypergraphs.prediction.models import SET_MODELS
from anyorder.experiments.hypergraphs.prediction.task import PublishedSets
from anyorder.experiments.hypergraphs.prediction.tuned import TUNED
from anyorder.training.config import override
from anyorder.training.run import Optimiser, Recipe, Run, Scale, Schedule
from anyorder.training.tables import Table

TASKS = {
    "Cora": PublishedSets(dataset="cora"),
    "Citeseer": PublishedSets(dataset="citeseer"),
    "Cora co-authorship": PublishedSets(dataset="cora-coauthorship"),
    "NTU2012": PublishedSets(dataset="ntu2012", normalise="columns"),
    "house-committees": PublishedSets(dataset="house-committees"),
    "walmart-trips": PublishedSets(dataset="walmart-trips", pool=3),
    "Cora (new nodes)": PublishedSets(dataset="cora", split_by="nodes"),
    "Citeseer (new nodes)": PublishedSets(dataset="citeseer", split_by="nodes"),
    "Cora co-authorship (new nodes)": PublishedSets(dataset="cora-coauthorship", split_by="nodes"),
    "NTU2012 (new nodes)": PublishedSets(dataset="ntu2012", normalise="columns", split_by="nodes"),
}
# nodes without features: nothing is known of new ones, and none are alike
BARE = ("house-committees", "walmart-trips")
EPOCHS = {"quick": 30, "full": 200}
# rows that tell what a part is worth have the settings of the row that they differ from in it
WHOLE = {"Ours, without pairs": "Ours", "NHP (CHESHIRE), with our pairs": "NHP (CHESHIRE)"}


def _recipe(dataset: str, row: str) -> Callable[[Scale], Run]:
    task, chosen = TASKS[dataset], TUNED.get((dataset, WHOLE.get(row, row)), ())
    model = replace(SET_MODELS[row], neighbours=0) if dataset in BARE else SET_MODELS[row]

    def make(scale: Scale) -> Run:
        schedule = Schedule(epochs=EPOCHS[scale], patience=10 if scale == "quick" else 40)
        reduced = f"at most {EPOCHS['quick']} epochs of 5 steps instead of {EPOCHS['full']}" if scale == "quick" else ""
        run = Run(task, model, Optimiser(learning_rate=5e-3), schedule, batch_size=1, reduced=reduced)
        return reduce(override, chosen, run)

    return make


RECIPES = [Recipe("hyperedge-sets", dataset, row, _recipe(dataset, row)) for dataset in TASKS for row in SET_MODELS]
TABLE = Table(
    name="hyperedge-sets",
    title="Beyond the paper: held-out hyperedges of many sizes against sets that are none "
    "(AUROC and average precision, means over three kinds of negatives)",
    datasets=tuple(TASKS),
    rows=tuple(SET_MODELS),
    metrics=("AUROC", "AP"),
)
