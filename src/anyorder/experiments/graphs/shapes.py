"""What a model must know of graphs: what is asked, how columns become channels, and how large it all is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from anyorder.experiments.graphs.encoding import Encoding
from anyorder.experiments.graphs.values import Level
from anyorder.training.shapes import Shapes

GoalKind = Literal["classification", "regression"]


@dataclass(frozen=True)
class GoalShapes(Shapes):
    """Targets: the classes of each, or mean and deviation of each over the training part."""

    kind: GoalKind
    targets: tuple[str, ...]
    classes: tuple[tuple[str, ...], ...] = ()
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()


@dataclass(frozen=True)
class GraphShapes(Shapes):
    """What is needed to build a model for graphs, and to give it others like them."""

    level: Level
    goal: GoalShapes
    nodes: Encoding
    edges: Encoding
    loops: bool
    """Whether one more channel of nodes marks loops."""
    directed: bool
    rows: int
    """To train on."""
    digest: str = ""
    """Tells the graphs and their parts from any other."""

    @property
    def channels_in(self) -> int:
        return max(1, self.nodes.channels + self.loops)

    @property
    def channels_edge(self) -> int:
        return self.edges.channels
