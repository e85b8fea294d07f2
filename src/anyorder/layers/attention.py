"""Higher-order attention (Eq. 7-9 and 13-16): one class, one attention; all orders, both layouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from anyorder.algebra import EquivalenceClass, Selection, SetPartition, pools, select, set_partitions
from anyorder.layers.checks import check_input, check_orders, check_positive
from anyorder.layers.kernels import Elu, FeatureMap, Kernel, RandomFeatures, Softmax
from anyorder.layers.linear_time import kernel_exact, kernel_relaxed
from anyorder.layers.projection import (
    Parts,
    PointwiseProjection,
    add_product,
    init_uniform,
    pointwise_into,
    project_together,
)
from anyorder.layers.softmax import prepare_softmax, softmax_attention
from anyorder.layouts import Features, IndexSet, Plan
from anyorder.ops.dropout import Dropout

Coupling = Literal["relaxed", "exact"]


class EquivariantAttention(nn.Module):
    r"""Attention from order k to order l over every equivalence class (Eq. 7).

    .. math:: Y_j = \sum_{h, \mu} \sum_{i} \alpha^{h,\mu}_{ij} A_i w^V_{h,\mu} w^O_{h,\mu}

    Pointwise classes have nothing to weigh: they are a gather and one matrix. Queries and keys come from lightweight
    layers at compact indices (Prop. 1). An output of order 0 has a learned query and uses softmax.

    Args:
        channels: of input and output.
        kernel: ``Softmax()`` is exact; ``RandomFeatures(...)`` and ``Elu()`` take linear time.
        coupling: for linear time, ``"relaxed"`` keeps the equalities of a class and drops its inequalities (Sec. 4.3),
            ``"exact"`` attends to exactly {i : (i, j) in mu}. Softmax is always exact.
        normalize: divide by the sum of the weights, Z_j.
        classes: which classes to use.
    """

    directions: Tensor | None

    def __init__(
        self,
        *,
        order_in: int,
        order_out: int,
        channels: int,
        heads: int,
        head_channels: int,
        kernel: Kernel | None = None,
        coupling: Coupling | None = None,
        normalize: bool = True,
        dropout: float = 0.0,
        classes: Selection = "all",
    ) -> None:
        super().__init__()
        check_orders(order_in=order_in, order_out=order_out)
        check_positive(channels=channels, heads=heads, head_channels=head_channels)
        self.order_in, self.order_out = order_in, order_out
        self.channels_in = self.channels_out = channels
        self.heads, self.head_channels = heads, head_channels
        self.kernel, self.coupling, self.normalize = _check_kernel(order_out, kernel, coupling, normalize)
        self.patterns = set_partitions(order_out)
        self.classes = select(order_in, order_out, classes)
        self.pooled = tuple(sorted((c for c in self.classes if c.kind != "pointwise"), key=_pool_order))
        self.dropout = Dropout(dropout)
        self._make_weights(channels, heads * head_channels)
        drawn = None if isinstance(self.kernel, Softmax) else self.kernel.draw(head_channels)
        self.register_buffer("directions", drawn)

    def _make_weights(self, channels: int, width: int) -> None:
        """Few large matrices: each holds all classes of a pattern, in the order of ``reading`` and ``writing``."""
        self.reading = {p: [c for c in self.pooled if c.source == p] for p in dict.fromkeys(c.source for c in self.pooled)}
        self.writing = {p: [c for c in self.pooled if c.target == p] for p in dict.fromkeys(c.target for c in self.pooled)}
        direct: dict[SetPartition, list[EquivalenceClass]] = {}
        for cls in self.classes:
            if cls.kind == "pointwise":
                direct.setdefault(cls.target, []).append(cls)
        self.runs = {p: _runs(shared, self.reading) for p, shared in self.writing.items()}
        into = {p: pointwise_into(self.order_in, p) for p in {*self.reading, *self.writing}}

        def lightweight(classes: Sequence[EquivalenceClass], out: int, bias: bool = True) -> PointwiseProjection:
            return PointwiseProjection(classes=classes, channels_in=channels, channels_out=out, bias=bias)

        self.query = nn.ModuleDict({_name(p): lightweight(into[p], len(c) * width) for p, c in self.writing.items()})
        self.key = nn.ModuleDict({_name(p): lightweight(into[p], len(c) * width) for p, c in self.reading.items()})
        self.pointwise = nn.ModuleDict({_name(p): lightweight(c, channels, bias=False) for p, c in direct.items()})
        self.value = nn.ParameterDict({_name(p): torch.empty(channels, len(c) * width) for p, c in self.reading.items()})
        self.output = nn.ParameterDict({_name(p): torch.empty(len(c) * width, channels) for p, c in self.writing.items()})
        for value in self.value.values():
            init_uniform(value, channels)
        for output in self.output.values():
            init_uniform(output, width)

    def prepare(self, index: IndexSet, target: IndexSet | None = None) -> IndexSet:
        """Work out now what a pass over ``index`` needs to know of it; returns the index set that the layer writes to."""
        target = index.target(self.order_out, target)
        plan, own = index.plan(target), index.plan(index)
        index.arrange()
        target.arrange()
        for maps, where in ((self.query, plan), (self.key, own), (self.pointwise, plan)):
            for each in maps.values():
                for cls in each.classes:  # type: ignore[union-attr]
                    where.pointwise(cls)
        for run in [run for runs in self.runs.values() for run in runs]:
            if isinstance(self.kernel, Softmax):
                for cls in run.classes:
                    prepare_softmax(plan, cls)
            elif self.coupling == "exact":
                plan.prepare(run.classes, coupling="exact")
            else:
                plan.keys(run.classes[0]), plan.asked(run.classes)
        return target

    def forward(self, x: Features, target: IndexSet | None = None) -> Features:
        check_input(self, x, self.order_in, self.channels_in, self._some_weight())
        target = x.target(self.order_out, target)
        plan = x.index.plan(target)
        read = x.index.split(x.rows)
        query, key, direct = self._project(plan, read)
        value = {p: self._split(read[p] @ self.value[_name(p)]) for p in key}
        asks = {p: _cut(rows, [run.write for run in self.runs[p]]) for p, rows in query.items()}
        every = [run for runs in self.runs.values() for run in runs]
        reads = {p: [run.read for run in every if run.classes[0].source == p] for p in key}
        keys, values = ({p: _cut(side[p], reads[p]) for p in key} for side in (key, value))
        parts = {}
        for pattern in self.patterns:
            if len(target.entries(pattern)) == 0:
                continue
            total, runs = direct.get(pattern), [run for run in self.runs.get(pattern, ()) if run.classes[0].source in key]
            if runs:  # one product for all classes: several narrow ones would each write the whole output
                received = [
                    self._attend(
                        plan,
                        run.classes,
                        asks[pattern][run.write.start],
                        keys[run.classes[0].source][run.read.start],
                        values[run.classes[0].source][run.read.start],
                    ).flatten(1)
                    for run in runs
                ]
                wide, weight = torch.cat(received, 1), self._output(pattern, runs)
                total = wide @ weight if total is None else add_product(total, wide, weight)
            if total is not None:
                parts[pattern] = total
        rows = target.assemble(parts, like=x.rows[:0])
        return Features.of_rows(target, self.dropout(rows))

    def kept(self, x: Features, target: IndexSet) -> int:
        """About how many bytes a forward pass keeps for the backward pass."""
        sides = ((x.index, self.reading), (target, self.writing))  # keys and values, queries and answers
        rows = sum(2 * len(index.entries(p)) * len(classes) for index, side in sides for p, classes in side.items())
        number = x.rows.element_size() * (4 if self.coupling == "exact" else 1)  # in double, and a few times
        return rows * self.heads * self.head_channels * number

    def _output(self, pattern: SetPartition, runs: Sequence[Run]) -> Tensor:
        """The output weights of some runs into a pattern, in their order."""
        weight = self.output[_name(pattern)]
        if tuple(runs) == self.runs[pattern]:
            return weight
        each = weight.unflatten(0, (-1, self.heads * self.head_channels))
        return torch.cat([each[run.write] for run in runs]).flatten(0, 1)

    def _project(self, plan: Plan, read: Parts) -> tuple[dict[SetPartition, Tensor], ...]:
        """Queries, keys and pointwise outputs by pattern; sites that read the same entries share their products."""
        wanted: dict[tuple[str, SetPartition], tuple[Plan, PointwiseProjection]] = {}
        own = plan.source.plan(plan.source)
        for kind, maps, where, patterns in (
            ("query", self.query, plan, self.writing),
            ("key", self.key, own, self.reading),
            ("direct", self.pointwise, plan, self.patterns),
        ):
            for pattern in patterns:
                if _name(pattern) in maps and len(where.target.entries(pattern)):
                    wanted[kind, pattern] = (where, maps[_name(pattern)])  # type: ignore[assignment]
        results: dict[str, dict[SetPartition, Tensor]] = {"query": {}, "key": {}, "direct": {}}
        for where in dict.fromkeys(plan for plan, _ in wanted.values()):
            for pattern in dict.fromkeys(p for (_, p), (site, _) in wanted.items() if site is where):
                chosen = {k: m for (k, p), (site, m) in wanted.items() if site is where and p == pattern}
                for kind, part in zip(chosen, project_together(where, pattern, read, [*chosen.values()]), strict=True):
                    results[kind][pattern] = part if kind == "direct" else self._split(part)
        return results["query"], results["key"], results["direct"]

    def _split(self, rows: Tensor) -> Tensor:
        """(entry, class x head x channel) to (entry, class, head, channel)."""
        return rows.unflatten(1, (-1, self.heads, self.head_channels))

    def _attend(
        self, plan: Plan, classes: tuple[EquivalenceClass, ...], query: Tensor, key: Tensor, value: Tensor
    ) -> Tensor:
        """(query, class, head, channel): what the queries receive from each class."""
        if isinstance(self.kernel, Softmax):
            parts = [softmax_attention(plan, c, query[:, n], key[:, n], value[:, n]) for n, c in enumerate(classes)]
            return torch.stack(parts, 1)
        features = FeatureMap.of(self.kernel, self.directions)
        if self.coupling == "exact":
            return kernel_exact(plan, classes, query, key, value, features, self.normalize)
        return kernel_relaxed(plan, classes, query, key, value, features, self.normalize)

    def weights_of(self, cls: EquivalenceClass) -> dict[str, Tensor]:
        """Views of the weights of one class, to read or to set in place.

        A pointwise class has ``pointwise[in, out]``. Others have ``query`` and ``key`` [pointwise class, in, head, channel],
        their biases [head, channel], ``value[in, head, channel]`` and ``output[head, channel, out]``.
        """
        if cls not in self.classes:
            raise ValueError(f"this layer does not use the class {cls}")
        source, target = _name(cls.source), _name(cls.target)
        if cls.kind == "pointwise":
            direct: PointwiseProjection = self.pointwise[target]  # type: ignore[assignment]
            return {"pointwise": direct.weight[direct.classes.index(cls)]}
        split = (-1, self.heads, self.head_channels)
        read, write = self.reading[cls.source].index(cls), self.writing[cls.target].index(cls)
        query: PointwiseProjection = self.query[target]  # type: ignore[assignment]
        key: PointwiseProjection = self.key[source]  # type: ignore[assignment]
        assert query.bias is not None and key.bias is not None
        return {
            "query": query.weight.unflatten(2, split)[:, :, write],
            "query_bias": query.bias.unflatten(0, split)[write],
            "key": key.weight.unflatten(2, split)[:, :, read],
            "key_bias": key.bias.unflatten(0, split)[read],
            "value": self.value[source].unflatten(1, split)[:, read],
            "output": self.output[target].unflatten(0, split)[write],
        }

    def _some_weight(self) -> Tensor:
        return next(self.parameters())

    def extra_repr(self) -> str:
        return (
            f"{self.order_in} -> {self.order_out}, channels={self.channels_in}, heads={self.heads} x {self.head_channels}, "
            f"classes={len(self.classes)}, {self.kernel}, coupling={self.coupling!r}"
        )


@dataclass(frozen=True)
class Run:
    """Classes that share their groups, and where they stand among the classes of their target and source patterns."""

    classes: tuple[EquivalenceClass, ...]
    write: slice
    read: slice


def _runs(writing: list[EquivalenceClass], reading: dict[SetPartition, list[EquivalenceClass]]) -> tuple[Run, ...]:
    """The pooled classes into a pattern, those that share their groups together."""
    return tuple(
        Run(shared, _slice(writing, shared), _slice(reading[shared[0].source], shared)) for shared in pools(writing).values()
    )


def _cut(rows: Tensor, slices: list[slice]) -> dict[int, Tensor]:
    """The classes of each slice, by where it starts; cut all at once, so that gradients are put together in one step."""
    ordered = sorted(slices, key=lambda part: part.start)
    parts = rows.split([part.stop - part.start for part in ordered], 1)
    return {part.start: cut for part, cut in zip(ordered, parts, strict=True)}


def _slice(among: list[EquivalenceClass], run: tuple[EquivalenceClass, ...]) -> slice:
    start = among.index(run[0])
    assert tuple(among[start : start + len(run)]) == run
    return slice(start, start + len(run))


def _pool_order(cls: EquivalenceClass) -> tuple[object, ...]:
    return (cls.source, cls.matched_source, cls.target, cls.matching)


def _name(pattern: SetPartition) -> str:
    """A pattern as a module name: the block of each axis."""
    return "p" + "_".join(map(str, pattern.labels))


def _check_kernel(
    order_out: int, kernel: Kernel | None, coupling: Coupling | None, normalize: bool
) -> tuple[Kernel, Coupling, bool]:
    if kernel is not None and not isinstance(kernel, (Softmax, RandomFeatures, Elu)):
        raise TypeError(f"kernel must be Softmax(), RandomFeatures(...) or Elu(), got {kernel!r}")
    if coupling not in (None, "relaxed", "exact"):
        raise ValueError(f"coupling must be 'relaxed' or 'exact', got {coupling!r}")
    if order_out == 0:
        return Softmax(), "exact", True
    if kernel is None or isinstance(kernel, Softmax):
        if coupling == "relaxed" or not normalize:
            raise ValueError("softmax is exact and normalised: coupling='relaxed' and normalize=False need another kernel")
        return Softmax(), "exact", True
    return kernel, coupling or "relaxed", normalize


def redraw_features(module: nn.Module, step: int) -> None:
    """Draw new random directions where the kernel asks for it at this training step; a step always draws the same."""
    layers = [layer for layer in module.modules() if isinstance(getattr(layer, "directions", None), Tensor)]
    for number, layer in enumerate(layers):
        kernel: Any = layer.kernel
        directions: Any = layer.directions
        if isinstance(kernel, RandomFeatures) and kernel.redraw and step > 0 and step % kernel.redraw == 0:
            generator = torch.Generator().manual_seed(step * 65537 + number)
            directions.copy_(kernel.draw(directions.shape[1], generator))
