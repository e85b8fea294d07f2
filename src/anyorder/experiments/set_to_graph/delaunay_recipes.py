"""Table 3: Delaunay triangulations from sets of points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from anyorder.experiments.set_to_graph.baselines.rows import DELAUNAY_ROWS
from anyorder.experiments.set_to_graph.delaunay_task import Delaunay
from anyorder.experiments.set_to_graph.models import SetEncoder, as_settings, narrowed
from anyorder.layers import SHARP, RandomFeatures
from anyorder.training.run import ModelConfig, Optimiser, Recipe, Run, Scale, Schedule
from anyorder.training.tables import Claim, Table

SIZES = {"Delaunay (50)": (50, 50), "Delaunay (20-80)": (20, 80)}
# phi: ReLU features of Performer, int(d log d) for heads of width d, never redrawn; the paper names the kernel alone.
OURS: dict[str, SetEncoder] = {
    "Ours (D)": SetEncoder(),
    "Ours (D, phi)": SetEncoder(kernel=RandomFeatures()),
    "Ours (D, learned phi)": SetEncoder(kernel=SHARP["kernel"]),
    "Ours (D, learned phi), exact": SetEncoder(**SHARP),  # the best of results/kernels.md
}
ORDER = ("SIAM", "SIAM-3", "GNN0", "GNN5", "GNN10", "MLP", "S2G", "S2G+", *OURS)
MODELS: dict[str, ModelConfig] = {row: OURS[row] if row in OURS else as_settings(DELAUNAY_ROWS[row]) for row in ORDER}


def _full(row: str, dataset: str) -> Run:
    """The protocol: 100 epochs, the last one counts; loss, rates and warm-up as in the paper's appendix.

    What it leaves open is as released: the rate of ours goes down linearly, and the pairs (i, i) have an MLP of their own.
    The released warm-up of ten epochs is not in the paper and left out.
    """
    task = Delaunay(*SIZES[dataset], with_f1=True)
    if row in OURS:
        schedule = Schedule(epochs=100, warmup_epochs=_warm_up(row, dataset), decay="linear", evaluate_every=5)
        batch_size = 32 if dataset == "Delaunay (50)" else 16
        model = replace(OURS[row], own_diagonal=True)
        return Run(task, model, Optimiser(learning_rate=1e-4), schedule, batch_size, eval_batch_size=64)
    rate = 1e-4 if row.startswith("GNN") else 1e-3
    return Run(task, MODELS[row], Optimiser(learning_rate=rate), Schedule(100, evaluate_every=5), 64, eval_batch_size=64)


def _warm_up(row: str, dataset: str) -> float:
    """Epochs of warm-up, which one row of the paper has."""
    return 1.0 if (row, dataset) == ("Ours (D, phi)", "Delaunay (20-80)") else 0.0


MEDIUM_ROWS = (*OURS, "S2G", "S2G+", "SIAM")
# Of ours: among the best of a few by validation after 3,000 steps (results/rates.md). The paper has 1e-4 and the released
# scripts 2e-4, for five to ten times as many steps of batches of 16 and 32. Baselines keep 1e-3: twice that gains .003.
MEDIUM_RATE = 5e-4
MEDIUM = """{steps:,} steps of {batch} sets of {sets:,} instead of {theirs} (baselines: 78,125 of 64) of 50,000,
{test:,} test sets instead of 5,000; ours 128 channels instead of 256, without dropout, since no set is seen more than
{epochs} times; baselines half as wide; coordinates with mean 0 and deviation 1; rate {rate:g}, linear to 0"""


def _medium(row: str, dataset: str) -> Run:
    """Ten times the steps of the quick scale and 128 channels: what a core trains in one to four hours."""
    task = Delaunay(*SIZES[dataset], train_sets=12_000, valid_sets=500, test_sets=2_000, standardise=True, with_f1=True)
    epochs, batch, rate = 10, 4, MEDIUM_RATE if row in OURS else 1e-3
    half = {"channels": 128, "head_channels": 32, "head": (128, 128), "dropout": 0.0, "own_diagonal": True}
    model = replace(OURS[row], **half) if row in OURS else narrowed(MODELS[row], 0.5)  # type: ignore[arg-type]
    theirs = "156,250 of 32" if dataset == "Delaunay (50)" else "312,500 of 16"
    numbers = {"sets": task.train_sets, "test": task.test_sets, "epochs": epochs, "batch": batch, "rate": rate}
    return Run(
        task,
        model,
        Optimiser(learning_rate=rate),
        Schedule(epochs=epochs, warmup_epochs=epochs / 100 * _warm_up(row, dataset), decay="linear"),
        batch_size=batch,
        eval_batch_size=32,
        reduced=MEDIUM.replace("\n", " ").format(steps=task.train_sets * epochs // batch, theirs=theirs, **numbers),
    )


QUICK = """{sets:,} training sets seen {epochs} times instead of 50,000 seen 100 times, {test:,} test sets instead of
5,000; ours 4 + 1 layers of 64 channels instead of 5 + 1 of 256, without dropout; baselines a quarter as wide. To
converge so soon, for all rows: coordinates with mean 0 and deviation 1 (not GNN), batches of {batch}, rate 1e-3 (GNN
2e-4), gradients clipped at 1, warm-up over a twentieth, then linear to 0"""


def _quick(row: str, dataset: str) -> Run:
    """What fits a core: every row sees as many sets in as many steps."""
    graph = row.startswith("GNN")  # sums over neighbours and inner products: larger inputs and rates make them collapse
    task = Delaunay(*SIZES[dataset], train_sets=4_000, valid_sets=200, test_sets=1_000, standardise=not graph)
    small = {"layers": 4, "channels": 64, "head_channels": 16, "head": (64, 64), "dropout": 0.0}
    model = replace(OURS[row], **small) if row in OURS else narrowed(MODELS[row], 0.25)  # type: ignore[arg-type]
    epochs, batch, rate = 3, 4, 2e-4 if graph else 1e-3
    numbers = {"sets": task.train_sets, "test": task.test_sets, "epochs": epochs, "batch": batch}
    return Run(
        task,
        model,
        Optimiser(learning_rate=rate, clip=1.0),
        Schedule(epochs=epochs, warmup_epochs=epochs / 20, decay="linear"),
        batch_size=batch,
        eval_batch_size=32,
        reduced=QUICK.replace("\n", " ").format(**numbers),
    )


def _recipe(row: str, dataset: str) -> Callable[[Scale], Run]:
    make = {"full": _full, "medium": _medium, "quick": _quick}
    return lambda scale: make[scale](row, dataset)


def _scales(row: str) -> tuple[Scale, ...]:
    return ("quick", "medium", "full") if row in MEDIUM_ROWS else ("quick", "full")


RECIPES = [Recipe("delaunay", dataset, row, _recipe(row, dataset), _scales(row)) for dataset in SIZES for row in MODELS]

METRICS = ("Acc", "Prec", "Rec", "F1")
_PAPER = {
    "Delaunay (50)": {
        "SIAM": ("0.939", "0.766", "0.653", "0.704"),
        "SIAM-3": ("0.911", "0.608", "0.538", "0.570"),
        "GNN0": ("0.826", "0.384", "0.966", "0.549"),
        "GNN5": ("0.809", "0.363", "0.985", "0.530"),
        "GNN10": ("0.759", "0.311", "0.978", "0.471"),
        "S2G": ("0.984", "0.927", "0.926", "0.926"),
        "S2G+": ("0.983", "0.927", "0.925", "0.926"),
        "Ours (D)": ("0.994", "0.981", "0.967", "0.974"),
        "Ours (D, phi)": ("0.991", "0.967", "0.952", "0.959"),
    },
    "Delaunay (20-80)": {
        "SIAM": ("0.919", "0.667", "0.764", "0.687"),
        "SIAM-3": ("0.895", "0.578", "0.622", "0.587"),
        "GNN0": ("0.810", "0.387", "0.946", "0.536"),
        "GNN5": ("0.777", "0.352", "0.975", "0.506"),
        "GNN10": ("0.746", "0.322", "0.970", "0.474"),
        "S2G": ("0.947", "0.736", "0.934", "0.799"),
        "S2G+": ("0.947", "0.735", "0.934", "0.798"),
        "Ours (D)": ("0.993", "0.982", "0.960", "0.971"),
        "Ours (D, phi)": ("0.989", "0.948", "0.956", "0.952"),
    },
}
TABLE = Table(
    name="delaunay",
    title="Table 3: set to graph, Delaunay triangulations",
    datasets=tuple(SIZES),
    rows=ORDER,
    metrics=METRICS,
    paper={
        (dataset, row, metric): text
        for dataset, rows in _PAPER.items()
        for row, values in rows.items()
        for metric, text in zip(METRICS, values, strict=True)
    },
    curve="F1",
    claims=tuple(
        Claim(f"Table 3, {dataset}", dataset, ("F1",), row, "S2G")
        for dataset in SIZES
        for row in OURS
        if row in _PAPER[dataset]
    ),
)
