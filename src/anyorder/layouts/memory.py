"""Values that are built once and kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

Built = TypeVar("Built")


class Memory:
    """Keeps what is derived from it. Sorting and searching are for the host: a compiled graph only reads what is kept."""

    def __init__(self) -> None:
        self._cache: dict[object, object] = {}

    def _once(self, key: object, build: Callable[[], Built]) -> Built:
        if key not in self._cache:
            refuse_in_graph()
            self._cache[key] = build()
        return self._cache[key]  # type: ignore[return-value]


def refuse_in_graph() -> None:
    """Refuse to build something while a graph is compiled: its result would hold for one batch only."""
    if torch.compiler.is_compiling():
        raise RuntimeError(
            "a compiled model reads plans that are made before: call model.prepare(x.index) on each new index set"
        )
