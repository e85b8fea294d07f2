"""Questions to a trained hyperedge model: scores of candidates in a file, and the best completions of a tuple."""

from __future__ import annotations

from typing import Any

from torch import nn

from anyorder.training.run import PredictRequest


def answer(model: nn.Module, shapes: dict[str, Any], request: PredictRequest) -> str:
    """Carry out a request."""
    raise NotImplementedError
