"""Counting patterns in random graphs, by order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from anyorder.experiments.expressivity.counting import Counting
from anyorder.experiments.expressivity.counts import COUNTS
from anyorder.experiments.expressivity.models import MatrixBaseline, MessagePassingBaseline, OrderEncoder, OrderMLP
from anyorder.layers import RandomFeatures
from anyorder.layouts import AllTuples
from anyorder.training.run import ModelConfig, Optimiser, Recipe, Run, Scale, Schedule
from anyorder.training.tables import Table

MLP = OrderMLP(layers=4, channels=32)
OURS = OrderEncoder(layers=2, channels=16, heads=1, head_channels=16, kernel=RandomFeatures(num_features=16), sizes=True)
MODELS: dict[str, ModelConfig] = {
    "GIN": MessagePassingBaseline(layers=4, channels=32),
    "PPGN": MatrixBaseline(blocks=3, channels=32),
    "MLP_pi (order 1)": replace(MLP, order=1, tuples=AllTuples(), classes="all"),
    "MLP_pi (order 2)": replace(MLP, order=2),
    "MLP_pi (order 3)": replace(MLP, order=3),
    "MLP_pi (order 4)": replace(MLP, order=4),
    "Ours (phi, order 2)": replace(OURS, order=2),
    "Ours (phi, order 3)": replace(OURS, order=3),
}


def _recipe(model: ModelConfig) -> Callable[[Scale], Run]:
    def make(scale: Scale) -> Run:
        # rows below the order that a pattern needs are there to be compared with
        task = Counting(below=True)
        schedule = Schedule(epochs=300, decay="linear", warmup_epochs=5, evaluate_every=5)
        run = Run(task, model, optimiser=Optimiser(learning_rate=5e-3), schedule=schedule, batch_size=16)
        if scale == "quick":
            small = replace(task, graphs=2000, most_nodes=12)
            short = replace(schedule, epochs=100)
            note = "2,000 graphs of 10 to 12 nodes instead of 5,000 of 10 to 20, 100 epochs instead of 300"
            run = replace(run, task=small, schedule=short, reduced=note)
        return run

    return make


RECIPES = [Recipe("counting", "Counting", row, _recipe(model)) for row, model in MODELS.items()]
# The best values that we know of, of models that learn one pattern at a time and count at each node
_PUBLISHED = {"4-cycles": ".0007", "5-cycles": ".0032", "6-cycles": ".0056"}
TABLE = Table(
    name="counting",
    title="Counting patterns in random graphs (mean absolute error over the deviation of the counts)",
    datasets=("Counting", *(f"Counting ({name})" for name in COUNTS)),
    rows=tuple(MODELS),
    metrics=("MAE",),
    paper={(f"Counting ({name})", "PPGN", "MAE"): f"best published {text}" for name, text in _PUBLISHED.items()},
    digits=4,
    lower_is_better=True,
)
