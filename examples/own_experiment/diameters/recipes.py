"""The table: a row per model, on a quick and on a full scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from anyorder.training.run import ModelConfig, Optimiser, Recipe, Run, Scale, Schedule
from anyorder.training.tables import Table
from diameters.models import PointEncoder, PointMLP
from diameters.task import Diameters

MODELS: dict[str, ModelConfig] = {"Ours": PointEncoder(), "MLP_pi": PointMLP()}


def _recipe(model: ModelConfig) -> Callable[[Scale], Run]:
    def make(scale: Scale) -> Run:
        run = Run(Diameters(), model, Optimiser(learning_rate=3e-3), Schedule(epochs=50), batch_size=50)
        if scale == "quick":
            run = replace(run, schedule=Schedule(epochs=5), reduced="5 epochs instead of 50")
        return run

    return make


RECIPES = [Recipe("diameters", "Normal points", row, _recipe(model)) for row, model in MODELS.items()]
TABLE = Table("diameters", "Diameters of sets", datasets=("Normal points",), rows=tuple(MODELS), metrics=("MAE",))
