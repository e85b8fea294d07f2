"""What a model must know of graphs: what is asked, how columns become channels, and how large it all is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

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

    def to_data(self) -> dict[str, Any]:
        """Plain data for a file."""
        plain: dict[str, Any] = _lists(asdict(self))
        return plain

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> GraphShapes:
        """Read what ``to_data`` wrote."""
        held = {key: _tuples(value) for key, value in data.items()}
        goal, nodes, edges = GoalShapes(**held["goal"]), Encoding(**held["nodes"]), Encoding(**held["edges"])
        return cls(**{**held, "goal": goal, "nodes": nodes, "edges": edges})


def _lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lists(part) for key, part in value.items()}
    return [_lists(part) for part in value] if isinstance(value, (tuple, list)) else value


def _tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _tuples(part) for key, part in value.items()}
    return tuple(_tuples(part) for part in value) if isinstance(value, (tuple, list)) else value
