"""How attention compares a query with a key: softmax, or a feature map whose products are summed in linear time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from anyorder.algebra.program import Attention
from anyorder.layers.module import check_positive
from anyorder.layouts import EntryPairs, Exact, Grouped, Single
from anyorder.layouts.memory import is_exported
from anyorder.ops.exact import exact_attention
from anyorder.ops.features import FeatureMap
from anyorder.ops.gather import highest_of
from anyorder.ops.segment import segment_attention, softmax_single
from anyorder.ops.softmax import softmax_pairs, softmax_tiles
from anyorder.saving import saved_value


@saved_value
class Kernel:
    """How queries and keys are compared. A kernel of your own derives from ``FeatureKernel``.

    >>> [kernel.is_linear for kernel in (Softmax(), Elu())]
    [False, True]
    """

    is_linear: ClassVar[bool]
    """Whether the cost is linear in the number of entries."""
    is_learned: ClassVar[bool] = False
    """Whether the directions are trained with the weights."""

    def draw(self, head_channels: int, generator: torch.Generator | None = None) -> Tensor | None:
        """Directions (feature, channel) that the layer keeps for the kernel, if it needs any."""
        return None

    def attention(self, coupling: Literal["relaxed", "exact"]) -> Attention:
        """How a layer with this kernel attends, which says what it wants to know of its index sets."""
        return coupling

    def attend(
        self, known: object, query: Tensor, key: Tensor, value: Tensor, features: FeatureMap | None, normalize: bool
    ) -> Tensor:
        """(query, class, head, channel): what queries receive.

        ``known`` is what the plan knows of the classes, ``features`` is ``feature_map`` of the directions.
        """
        raise NotImplementedError

    def feature_map(self, directions: Tensor | None) -> FeatureMap | None:
        """phi with these directions, if the kernel has one."""
        return None


@dataclass(frozen=True)
class Softmax(Kernel):
    """exp(q.k / sqrt(d)), normalised over the keys (Eq. 12). Exact; the cost grows with the number of pairs.

    >>> Softmax().is_linear
    False
    """

    is_linear = False

    def attention(self, coupling: Literal["relaxed", "exact"]) -> Attention:
        return "softmax"

    def attend(
        self, known: object, query: Tensor, key: Tensor, value: Tensor, features: FeatureMap | None, normalize: bool
    ) -> Tensor:
        assert isinstance(known, tuple)
        parts = []
        for n, one in enumerate(known):
            rows = (query[:, n], key[:, n], value[:, n])
            if isinstance(one, EntryPairs):
                parts.append(softmax_pairs(one, *rows))
            else:
                parts.append(softmax_single(one, *rows) if isinstance(one, Single) else softmax_tiles(one, *rows))
        return torch.stack(parts, 1)


class FeatureKernel(Kernel):
    """A kernel phi(q).phi(k) in linear time.

    A kernel of your own is one frozen dataclass: ``draw`` gives the directions w, if it has any, and ``feature_map`` says
    which formula is applied to w.x (see ``anyorder.ops.activations.register_activation``). A map that is no function of
    one number at a time overrides ``transform``.

    >>> isinstance(RandomFeatures(kind="relu"), FeatureKernel), isinstance(Softmax(), FeatureKernel)
    (True, False)
    """

    is_linear = True

    @property
    def transforms(self) -> bool:
        """Whether ``transform`` does more than hand on what it is given."""
        return type(self).transform is not FeatureKernel.transform

    def feature_map(self, directions: Tensor | None) -> FeatureMap:
        """phi with these directions."""
        raise NotImplementedError

    def transform(
        self, known: Grouped, query: Tensor, key: Tensor, features: FeatureMap | None, normalize: bool
    ) -> tuple[Tensor, Tensor, FeatureMap]:
        """Queries, keys and the map that is still to be applied to them."""
        assert features is not None
        return query, key, features

    def attend(
        self, known: object, query: Tensor, key: Tensor, value: Tensor, features: FeatureMap | None, normalize: bool
    ) -> Tensor:
        """Relaxed attention, of which exact attention is a signed sum.

        It keeps the equalities of a class between query and key, as Eq. 29 and Theorem 2 need. Eq. 21 as printed drops
        them as well: its keys are those of all queries.
        """
        if isinstance(known, Grouped):
            query, key, left = self.transform(known, query, key, features, normalize)
            return segment_attention(query, key, value, known.keys, known.queries, left, normalize)[0]
        assert isinstance(known, tuple)
        return self._attend_exactly(known, query, key, value, features, normalize)

    def _attend_exactly(
        self,
        known: tuple[Exact, ...],
        query: Tensor,
        key: Tensor,
        value: Tensor,
        features: FeatureMap | None,
        normalize: bool,
    ) -> Tensor:
        """Class by class, each in double precision."""
        assert features is not None
        if self.transforms:
            query, key, features = self.transform(
                known[0].terms[0], query.double(), key.double(), features.double(), normalize
            )
        columns = zip(known, *(x.split(1, 1) for x in (query, key, value)), strict=True)
        parts = [exact_attention(q, k, v, one, features, normalize) for one, q, k, v in columns]
        return torch.cat(parts, 1)


@dataclass(frozen=True)
class Elu(FeatureKernel):
    """phi(x) = elu(x) + 1 + eps (Katharopoulos et al. 2020).

    >>> Elu(eps=1e-3)
    Elu(eps=0.001)

    Without eps, gradients overflow where a query and its keys are far apart.

    Args:
        eps: added to every feature.
    """

    eps: float = 1e-6

    def feature_map(self, directions: Tensor | None) -> FeatureMap:
        return FeatureMap("elu", None, self.eps)


@dataclass(frozen=True)
class RandomFeatures(FeatureKernel):
    """Random feature maps of Performers (Choromanski et al. 2021) with orthogonal directions w.

    >>> RandomFeatures(num_features=5).draw(8).shape
    torch.Size([5, 8])

    ``relu``: phi(x) = relu(w.x') + eps. ``softmax``: phi(x) = exp(w.x' - |x'|^2 / 2) + eps, an unbiased estimate of softmax.
    x' = x / d^(1/4) for heads of width d.

    Args:
        kind: which map.
        num_features: number of directions (default: int(d log d), at least 1).
        redraw: draw new directions every so many training steps (see ``redraw_features``); None: never.
        eps: added to every feature, so that no norm is zero.
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
            raise ValueError(f"eps must be positive, so that no norm is zero, got {self.eps}")

    @property
    def transforms(self) -> bool:
        return self.kind == "softmax"

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
        if torch.get_default_device().type == "meta":  # shapes alone
            return torch.empty(rows, head_channels)
        blocks = []
        for _ in range(math.ceil(rows / head_channels)):
            gaussian = torch.randn(head_channels, head_channels, generator=generator, dtype=torch.float64)
            blocks.append(torch.linalg.qr(gaussian).Q.T)
        lengths = torch.randn(rows, head_channels, generator=generator, dtype=torch.float64).norm(dim=1)
        return (torch.cat(blocks)[:rows] * lengths[:, None]).to(torch.get_default_dtype())

    def feature_map(self, directions: Tensor | None) -> FeatureMap:
        assert directions is not None
        kind = "none" if self.kind == "softmax" else "relu"  # the softmax map is applied by ``transform``
        return FeatureMap(kind, directions * directions.shape[1] ** -0.25, self.eps)

    def transform(
        self, known: Grouped, query: Tensor, key: Tensor, features: FeatureMap | None, normalize: bool
    ) -> tuple[Tensor, Tensor, FeatureMap]:
        """The softmax map is applied here, its exponents shifted by their maximum, which cancels in N / Z up to eps.

        The maximum is taken per query, and per graph for keys, so that no graph sees another.
        """
        assert features is not None and features.directions is not None
        if self.kind != "softmax":
            return query, key, features
        asking, asked = _exponents(query, features.directions), _exponents(key, features.directions)
        if normalize and (is_exported() or len(key)):
            asking = asking - asking.amax(-1, keepdim=True)
            asked = asked - _highest(asked.amax(-1, keepdim=True), known)
        return asking.exp() + self.eps, asked.exp() + self.eps, FeatureMap("none")


@saved_value
@dataclass(frozen=True)
class KernelsByKind:
    """A kernel for local classes, whose groups are small on sparse graphs, and another one for global classes.

    >>> KernelsByKind(local=Softmax(), other=Elu()).other.is_linear
    True

    Args:
        local: of classes that share some nodes with their output.
        other: of classes that share none.
    """

    local: Kernel
    other: Kernel


def _exponents(x: Tensor, directions: Tensor) -> Tensor:
    """w.x' - |x'|^2 / 2 with x' = x / d^(1/4); ``directions`` are w / d^(1/4)."""
    half_norm = x.square().sum(-1, keepdim=True) / (2 * math.sqrt(x.shape[-1]))
    return x @ directions.to(x.dtype).T - half_norm


def _highest(rows: Tensor, known: Grouped) -> Tensor:
    """For each row the highest of its graph, with the gradient of the row that holds it."""
    index = known.key_graph.view(-1, *[1] * (rows.ndim - 1)).expand_as(rows)
    with torch.no_grad():
        most = highest_of(rows, known.key_graph, known.num_graphs)
        if is_exported():
            return most.gather(0, index)
        places = torch.arange(len(rows), device=rows.device).view_as(index[:, :1, :1, :1]).expand_as(rows)
        holders = torch.where(rows == most.gather(0, index), places, -1)
        holder = holders.new_full(most.shape, -1).scatter_reduce(0, index, holders, "amax").clamp(min=0)
    return rows.gather(0, holder).gather(0, index)
