"""The largest distance between two points of a set: an experiment outside of anyorder."""

from anyorder.experiments import Experiment

EXPERIMENT = Experiment(
    "diameters",
    tables={"diameters": "diameters.recipes"},
    types={"diameters.task": ("Diameters",), "diameters.models": ("PointEncoder", "PointMLP")},
)
