"""Learned features that compete: attention in linear time that can be sharp."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from anyorder.algebra.program import Attention
from anyorder.layers.kernels import FeatureKernel, RandomFeatures
from anyorder.layers.module import check_positive
from anyorder.layouts import Grouped, Tiling
from anyorder.ops.factored import factored_tiles
from anyorder.ops.features import FeatureMap
from anyorder.ops.segment import divided, in_full


@dataclass(frozen=True)
class LearnedFeatures(FeatureKernel):
    r"""Learned features that compete: phi(x) = softmax([w.x', -w.x']) + eps, x' = x / d^(1/4), with trained directions w.

    >>> LearnedFeatures(num_features=6).is_linear
    True

    Unlike ``relu`` features, which grow in proportion to x so that its length cancels in N / Z, these become sharper as
    queries and keys grow: attention has a temperature, in linear time.

    With several factors, phi(x) holds all products of one feature of each factor: 256 features are two softmaxes over 16,
    which tell apart 256 cells of a grid with 16 directions.

    What is sharp finds itself first: where queries and keys stand for the same entries, ``coupling="exact"`` keeps an entry
    from attending to itself, as softmax does. Relaxed coupling leaves it in.

    >>> LearnedFeatures(num_features=256, factors=2).draw(8).shape
    torch.Size([16, 8])

    Args:
        num_features: number of features, two for each direction (default: 2 int(d log d), at least 2); with several
            factors, a power of an even number.
        eps: added to every feature of a factor, so that no norm is zero.
        factors: how many softmaxes are multiplied.
    """

    num_features: int | None = None
    eps: float = 1e-6
    factors: int = 1
    is_learned = True

    def __post_init__(self) -> None:
        check_positive(factors=self.factors)
        if self.num_features is not None:
            check_positive(num_features=self.num_features)
            if self.factors == 1 and self.num_features % 2:
                raise ValueError(f"num_features must be even, two for each direction, got {self.num_features}")
            if self._of_factor(self.num_features) is None:
                raise ValueError(
                    f"num_features must be an even number to the power of factors={self.factors}, got {self.num_features}"
                )
        elif self.factors > 1:
            raise ValueError(f"num_features must be given with factors={self.factors}")
        if not self.eps > 0:
            raise ValueError(f"eps must be positive, so that no norm is zero, got {self.eps}")

    def _of_factor(self, num_features: int) -> int | None:
        """Features of one factor, if there is an even number of them."""
        each = round(num_features ** (1 / self.factors))
        return each if each**self.factors == num_features and each % 2 == 0 else None

    def draw(self, head_channels: int, generator: torch.Generator | None = None) -> Tensor:
        """Directions (feature, channel) to begin with, as those of ``RandomFeatures``."""
        each = None if self.num_features is None else self._of_factor(self.num_features)
        half = None if each is None else self.factors * each // 2
        return RandomFeatures(num_features=half).draw(head_channels, generator)

    def feature_map(self, directions: Tensor | None) -> FeatureMap:
        assert directions is not None
        return FeatureMap("none", directions * directions.shape[1] ** -0.25, self.eps)

    def transform(
        self, known: Grouped, query: Tensor, key: Tensor, features: FeatureMap | None, normalize: bool
    ) -> tuple[Tensor, Tensor, FeatureMap]:
        """All products of features: as many as there are."""
        return _product(self._factors(query, features)), _product(self._factors(key, features)), FeatureMap("none")

    def attention(self, coupling: Literal["relaxed", "exact"]) -> Attention:
        return "pairs" if coupling == "exact" and self.factors > 1 else coupling

    def attend(
        self, known: object, query: Tensor, key: Tensor, value: Tensor, features: FeatureMap | None, normalize: bool
    ) -> Tensor:
        """With several factors the products are never written out."""
        if self.factors == 1:
            return super().attend(known, query, key, value, features, normalize)
        asking, asked = self._factors(query, features), self._factors(key, features)
        if isinstance(known, Grouped):
            return self._summed(known, asking, asked, value, normalize)
        assert isinstance(known, tuple)
        parts = []
        # sums of positive products lose nothing in bfloat16, whose range is that of singles; eps would vanish in float16
        kind = value.dtype if value.dtype == torch.bfloat16 else asked.dtype
        for n, one in enumerate(known):
            of_query, of_key, answers = asking[:, n : n + 1], asked[:, n : n + 1], value[:, n : n + 1]
            if isinstance(one, Tiling):
                rows = (of_query[:, 0].flatten(-2).to(kind), of_key[:, 0].flatten(-2).to(kind), answers[:, 0].to(kind))
                found = factored_tiles(one, *rows, factors=self.factors, normalize=normalize)
                parts.append(found.unsqueeze(1).to(value.dtype))
            else:
                parts.append(self._summed((one,), of_query, of_key, answers, normalize))
        return torch.cat(parts, 1)

    def _summed(self, known: object, asking: Tensor, asked: Tensor, value: Tensor, normalize: bool) -> Tensor:
        """In linear time: the last factor of a key goes with its value.

        (a x b)(a' x b')^T v = a (a'^T (b' x v)) b: attention with the other factors gives the rest to be multiplied by b.
        """
        widened = torch.cat([value, torch.ones_like(value[..., :1])], -1).to(asked.dtype)  # the last sum is the norm
        spread = (asked[..., -1, :].unsqueeze(-1) * widened.unsqueeze(-2)).flatten(-2)
        received = _MADE.attend(known, _product(asking[..., :-1, :]), _product(asked[..., :-1, :]), spread, _AS_IT_IS, False)
        sums = (asking[..., -1, :].unsqueeze(-1) * received.unflatten(-1, (asking.shape[-1], -1))).sum(-2)
        sums, norms = sums[..., :-1], sums[..., -1:]
        return (divided(sums, norms) if normalize else sums).to(value.dtype)

    def _factors(self, x: Tensor, features: FeatureMap | None) -> Tensor:
        """The softmaxes of queries or keys (..., factor, feature); in singles where products are in half precision."""
        assert features is not None and features.directions is not None
        with in_full(x):
            x = x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
            scores = (x @ features.directions.to(x.dtype).T).unflatten(-1, (self.factors, -1))
            highest = scores.detach().abs().amax(-1, keepdim=True)  # softmax by hand: torch's is slow where rows are short
            powers = torch.cat([scores - highest, -scores - highest], -1).exp()
            return powers / powers.sum(-1, keepdim=True) + self.eps


class _Made(FeatureKernel):
    """Features that are there already."""


_MADE, _AS_IT_IS = _Made(), FeatureMap("none")


def _product(factors: Tensor) -> Tensor:
    """All products of one feature of each factor (..., factor, feature)."""
    first, *others = factors.unbind(-2)
    for other in others:
        first = (first.unsqueeze(-1) * other.unsqueeze(-2)).flatten(-2)
    return first


SHARP: dict[str, Any] = {"kernel": LearnedFeatures(num_features=512, factors=3), "coupling": "exact"}
"""Settings of layers for attention in linear time that can be nearly as sharp as softmax: ``Encoder(..., **SHARP)``."""
