"""What an order buys: pairs of BREC, CSL, SR25 and EXP that are told apart, by order; and exact k-WL beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from anyorder.experiments.expressivity.models import MatrixBaseline, MessagePassingBaseline, OrderEncoder, OrderMLP
from anyorder.experiments.expressivity.pairs import GROUPS
from anyorder.experiments.expressivity.task import DATASETS, ColourRefinement, GraphPairs, Name
from anyorder.experiments.expressivity.verdicts import Judge
from anyorder.layers import RandomFeatures
from anyorder.layouts import AllTuples, ConnectedTuples, TuplesWithin
from anyorder.training.run import ModelConfig, Recipe, Run, Scale
from anyorder.training.tables import Table

PHI = RandomFeatures(num_features=16)
STEEP = 30.0  # a sine of standardised channels that turns several times: random weights then hash, as colours do
MLP = OrderMLP(layers=5, channels=8, frequency=STEEP)  # 3-WL needs up to 5 rounds on BREC
OURS = OrderEncoder(layers=2, channels=8, gain=6.0)
NODES = {"order": 1, "tuples": AllTuples(), "classes": "all"}
FEWER = (ConnectedTuples(components=2), TuplesWithin(1))  # for CFI graphs, which are sparse; for the 4-vertex condition

MODELS: dict[str, ModelConfig] = {
    "1-WL": ColourRefinement(1),
    "2-WL": ColourRefinement(2),
    "3-WL": ColourRefinement(3),
    "4-WL": ColourRefinement(4),
    "GIN": MessagePassingBaseline(),
    "PPGN": MatrixBaseline(blocks=5, frequency=STEEP / 6),  # it has two sines in a row
    "MLP_pi (order 1)": replace(MLP, **NODES),  # type: ignore[arg-type]
    "MLP_pi (order 2)": replace(MLP, order=2),
    "MLP_pi (order 3)": replace(MLP, order=3),
    "MLP_pi (order 3, connected)": replace(MLP, order=3, tuples=ConnectedTuples()),
    "MLP_pi (order 4)": replace(MLP, order=4, channels=4, otherwise=FEWER),
    "MLP_pi (order 4, connected)": replace(MLP, order=4, tuples=ConnectedTuples()),
    "Ours (order 1)": replace(OURS, **NODES),  # type: ignore[arg-type]
    "Ours (order 2)": replace(OURS, order=2),
    "Ours (order 3)": replace(OURS, order=3, layers=5),
    "Ours (order 4)": replace(OURS, order=4),
    "Ours (phi, order 1)": replace(OURS, kernel=PHI, **NODES),  # type: ignore[arg-type]
    "Ours (phi, order 2)": replace(OURS, kernel=PHI, order=2),
    "Ours (phi, order 3)": replace(OURS, kernel=PHI, order=3, layers=5),
    "Ours (phi, order 4)": replace(OURS, kernel=PHI, order=4),
}


def _most_tuples(model: ModelConfig) -> int:
    """Tuples of a graph up to which a pair is judged on a machine of this size: a few minutes of one core.

    For MLP_pi these are all tuples of 3 of 200 nodes, which is all of BREC, and of 4 of 62; for ours, of 3 of 64 nodes and
    of 4 of 26.
    """
    if isinstance(model, OrderEncoder):
        return {3: 250_000, 4: 400_000}.get(model.order, 10**6)
    if isinstance(model, OrderMLP):
        return {3: 8_000_000, 4: 13_500_000}.get(model.order, 10**6)
    return 10**6


def _trainable(model: ModelConfig) -> ModelConfig:
    """The model as it is trained: steep functions are for random weights."""
    if isinstance(model, OrderMLP | MatrixBaseline):
        return replace(model, frequency=None)
    return replace(model, gain=1.0) if isinstance(model, OrderEncoder) else model


def _recipe(dataset: Name, model: ModelConfig) -> Callable[[Scale], Run]:
    def make(scale: Scale) -> Run:
        judge = Judge(most_tuples=_most_tuples(model))
        if isinstance(model, ColourRefinement):
            return Run(GraphPairs(dataset, judge), model)
        if scale == "quick":
            return Run(GraphPairs(dataset, judge), model, reduced="random weights in float64, 3 copies of each graph")
        return Run(GraphPairs(dataset, replace(judge, train=True)), _trainable(model))

    return make


RECIPES = [
    Recipe("expressivity", dataset, row, _recipe(dataset, model)) for dataset in DATASETS for row, model in MODELS.items()
]
_PUBLISHED = {"3-WL": "270", "PPGN": "233", "GIN": "0", "1-WL": "0", "2-WL": "0"}
TABLE = Table(
    name="expressivity",
    title="What an order tells apart: pairs of graphs (best published on BREC that we know of: I2-GNN, 281)",
    datasets=("BREC", *(f"BREC ({group})" for group in GROUPS), "CSL", "SR25", "EXP"),
    rows=tuple(MODELS),
    metrics=("pairs", "judged", "trained", "unreliable"),
    paper={("BREC", row, "pairs"): text for row, text in _PUBLISHED.items()},
    digits=0,
)
