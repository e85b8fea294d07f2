"""Delaunay: what the two shipped models say of a set that they have not seen."""
from pathlib import Path
import matplotlib.pyplot as plt
import anyorder
from anyorder.experiments.set_to_graph.delaunay_picture import panels_of
from anyorder.experiments.set_to_graph.triangulations import DelaunaySets

folder = Path(anyorder.__file__).parent / "checkpoints"
sets = list(DelaunaySets(1, 40, 40, seed=7))
styles = {"right": ("#6b7280", "-"), "missed": ("#0072b2", "--"), "wrong": ("#d55e00", "-")}
figure, axes = plt.subplots(1, 2, figsize=(8, 4))
for name, axis in zip(("delaunay-1-ours", "delaunay-2-s2g"), axes, strict=True):
    [panel] = panels_of(folder / name, sets)
    counts = {kind: len(edges) for kind, edges in panel.edges().items()}
    print(f"{panel.title}: F1 {panel.f1:.3f}, {counts}")
    for kind, edges in panel.edges().items():
        colour, style = styles[kind]
        for i, j in edges:
            axis.plot(*panel.points[[i, j]].T, color=colour, linestyle=style, linewidth=1.2)
    axis.scatter(*panel.points.T, s=12, color="#1f2937", zorder=2)
    axis.set_title(f"{panel.title}: F1 {panel.f1:.3f}")
figure.savefig("picture.svg")
