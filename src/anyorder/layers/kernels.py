"""How attention compares a query with a key: softmax, or a feature map whose products are summed in linear time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from anyorder.layers.checks import check_positive


@dataclass(frozen=True)
class Softmax:
    """exp(q.k / sqrt(d)), normalised over the keys (Eq. 9). Exact; the cost grows with the number of pairs."""


@dataclass(frozen=True)
class Elu:
    """phi(x) = elu(x) + 1 (Katharopoulos et al. 2020)."""

    def draw(self, head_channels: int, generator: torch.Generator | None = None) -> Tensor | None:
        return None


@dataclass(frozen=True)
class RandomFeatures:
    """Random feature maps of Performers (Choromanski et al. 2021) with orthogonal directions w.

    ``relu``: phi(x) = relu(w.x') + eps. ``softmax``: phi(x) = exp(w.x' - |x'|^2 / 2) + eps, an unbiased estimate of softmax.
    x' = x / d^(1/4) for heads of width d.

    Args:
        kind: which map.
        num_features: directions; int(d log d), at least 1, unless told.
        redraw: draw new directions every so many training steps (see ``redraw_features``); None: never.
    """

    kind: Literal["relu", "softmax"] = "relu"
    num_features: int | None = None
    redraw: int | None = None
    eps: float = 1e-3

    def __post_init__(self) -> None:
        if self.kind not in ("relu", "softmax"):
            raise ValueError(f"kind must be 'relu' or 'softmax', got {self.kind!r}")
        if self.num_features is not None:
            check_positive(num_features=self.num_features)
        if self.redraw is not None:
            check_positive(redraw=self.redraw)
        if not self.eps > 0:
            raise ValueError(f"eps must be positive, so that no normaliser is zero, got {self.eps}")

    def features_for(self, head_channels: int) -> int:
        """Number of directions for heads of this width.

        >>> RandomFeatures().features_for(8), RandomFeatures(num_features=5).features_for(8)
        (16, 5)
        """
        if self.num_features is not None:
            return self.num_features
        return max(1, int(head_channels * math.log(head_channels)))

    def draw(self, head_channels: int, generator: torch.Generator | None = None) -> Tensor:
        """Directions (feature, channel): orthogonal within blocks of ``head_channels``, with lengths of Gaussian vectors."""
        rows = self.features_for(head_channels)
        blocks = []
        for _ in range(math.ceil(rows / head_channels)):
            gaussian = torch.randn(head_channels, head_channels, generator=generator, dtype=torch.float64)
            blocks.append(torch.linalg.qr(gaussian).Q.T)
        lengths = torch.randn(rows, head_channels, generator=generator, dtype=torch.float64).norm(dim=1)
        return (torch.cat(blocks)[:rows] * lengths[:, None]).to(torch.get_default_dtype())


Kernel = Softmax | RandomFeatures | Elu


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """A feature map ready to apply: ``kind`` names the formula, ``directions`` holds w / d^(1/4)."""

    kind: str
    directions: Tensor | None
    eps: float

    @classmethod
    def of(cls, kernel: RandomFeatures | Elu, directions: Tensor | None) -> FeatureMap:
        if isinstance(kernel, Elu):
            return cls("elu", None, 0.0)
        assert directions is not None
        return cls("relu" if kernel.kind == "relu" else "exp", directions * directions.shape[1] ** -0.25, kernel.eps)

    def double(self) -> FeatureMap:
        return FeatureMap(self.kind, None if self.directions is None else self.directions.double(), self.eps)

    def __call__(self, x: Tensor, shift: Tensor | float = 0.0) -> Tensor:
        """phi(x) over the last axis; ``shift`` is subtracted in the exponent of the softmax map."""
        if self.kind == "none":
            return x
        if self.kind == "elu":
            return torch.nn.functional.elu(x) + 1
        assert self.directions is not None
        scores = x @ self.directions.to(x.dtype).T
        if self.kind == "relu":
            return scores.relu() + self.eps
        return (scores - _half_norm(x) - shift).exp() + self.eps

    def exponent(self, x: Tensor) -> Tensor:
        """The largest exponent of the softmax map of each row."""
        assert self.directions is not None
        return (x @ self.directions.to(x.dtype).T - _half_norm(x)).amax(-1, keepdim=True)


def _half_norm(x: Tensor) -> Tensor:
    return x.square().sum(-1, keepdim=True) / (2 * math.sqrt(x.shape[-1]))
