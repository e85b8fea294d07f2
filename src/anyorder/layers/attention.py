"""Higher-order attention (Eq. 10-12 and 21): one class, one attention; all orders, both layouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from anyorder.algebra import (
    PROJECTING,
    SHARINGS,
    EquivalenceClass,
    Projecting,
    Selection,
    SetPartition,
    Sharing,
    attention_program,
    pools,
    projecting,
    select,
)
from anyorder.algebra.attention_steps import pooled
from anyorder.algebra.program import Attend, ColumnSpan, Combine, Program, Project, Values, module_name
from anyorder.layers.kernels import Kernel
from anyorder.layers.module import FeatureModule, check_input, check_orders, check_positive
from anyorder.layers.named_kernels import Coupling, Kernels, check_kernels
from anyorder.layers.projection import PointwiseProjection, init_uniform
from anyorder.layers.recompute import in_parts
from anyorder.layouts import Features, Grouped, IndexSet
from anyorder.layouts.memory import is_transformed
from anyorder.ops.dropout import Dropout
from anyorder.ops.features import FeatureMap
from anyorder.ops.gather import Parts, add_product, product, project

RECOMPUTED = 256 * 2**20
"""Bytes that attention may keep for its backward pass before it recomputes them instead, and of its answers."""
Made = dict[tuple[str, int, SetPartition], list[Tensor]]
"""What earlier steps made, by role, number of the attention (-1: for all) and pattern."""


class EquivariantAttention(FeatureModule):
    r"""Attention from order k to order l over every equivalence class (Eq. 10).

    >>> from anyorder.testing import random_features
    >>> layer = EquivariantAttention(order_in=2, order_out=1, channels=4, heads=2, head_channels=2)
    >>> y = layer(random_features(order=2, channels=4, dtype=torch.float32))
    >>> y.order, y.channels
    (1, 4)

    .. math:: Y_j = \sum_{h, \mu} \sum_{i} \alpha^{h,\mu}_{ij} A_i w^V_{h,\mu} w^O_{h,\mu}

    Pointwise classes have nothing to weigh: they are a gather and one matrix. Queries and keys come from lightweight
    layers at compact indices (Prop. 1). An output of order 0 has a learned query and uses softmax. ``print(layer.program)``
    shows what a forward pass does.

    Args:
        order_in, order_out: k and l.
        channels: width of input and output.
        heads, head_channels: number of heads and width of each.
        kernel: ``Softmax()`` (default) is exact; ``RandomFeatures(...)``, ``LearnedFeatures(...)`` and ``Elu()`` take linear
            time. By name: softmax, relu and favor (random features), learned, elu. ``KernelsByKind(local, other)`` or a
            mapping gives ``local`` classes (which share nodes with their output) and ``global`` ones a kernel of their own.
        coupling: for linear time, ``"relaxed"`` (default) drops the inequalities of a class between i and j and
            keeps its equalities, as Eq. 29 and Theorem 2 need (Eq. 21 as printed drops both). ``"exact"`` attends to exactly
            {i : (i, j) in mu}. Softmax is always exact.
        normalize: divide by the sum of the weights, Z_j.
        dropout: share of what the heads receive that is dropped in training, before the output matrix; the pointwise part
            is not touched.
        classes: which classes to use. With ``"into nodes"`` nodes alone attend, at half the cost for order 2: an
            ``EncoderLayer`` lets edges read their nodes in its MLP.
        sharing: which weights classes have in common; ``"none"`` (default) is the layer of the paper. ``"keys"``: classes
            that read the same entries in the same groups have the same keys and values, so that a group is summed once.
            ``"queries"``: classes that write to the same pattern have the same queries. ``"keys and queries"``: both.
        projection_classes: pointwise classes that make queries and keys. ``"pointwise"`` (default) is the layer
            of the paper; with ``"pointwise, in place"`` an entry makes its own from itself alone.
        output_rank: the matrices after attention as a product through this many channels (default: whole matrices).
        recompute: attend part by part, and recompute queries, keys and values of a part in its backward pass (default: where
            attention in linear time would keep 256 MB for it).
    """

    def __init__(
        self,
        *,
        order_in: int,
        order_out: int,
        channels: int,
        heads: int,
        head_channels: int,
        kernel: Kernels | None = None,
        coupling: Coupling | None = None,
        normalize: bool = True,
        dropout: float = 0.0,
        classes: Selection = "all",
        sharing: Sharing = "none",
        projection_classes: Projecting = "pointwise",
        output_rank: int | None = None,
        recompute: bool | None = None,
    ) -> None:
        super().__init__()
        check_orders(order_in=order_in, order_out=order_out)
        check_positive(channels=channels, heads=heads, head_channels=head_channels)
        if sharing not in SHARINGS:
            raise ValueError(f"sharing must be one of {[*SHARINGS]}, got {sharing!r}")
        if projection_classes not in PROJECTING:
            raise ValueError(f"projection_classes must be one of {[*PROJECTING]}, got {projection_classes!r}")
        if output_rank is not None:
            check_positive(output_rank=output_rank)
        self.sharing, self.output_rank, self.recompute = sharing, output_rank, recompute
        self.projection_classes = projection_classes
        self.order_in, self.order_out = order_in, order_out
        self.channels_in = self.channels_out = channels
        self.heads, self.head_channels = heads, head_channels
        self.kernels, self.coupling, self.normalize = check_kernels(order_out, kernel, coupling, normalize)
        self.classes = select(order_in, order_out, classes)
        modes = tuple(each.attention(self.coupling) for each in self.kernels)
        self.program, self.program_same = (
            attention_program(order_in, order_out, self.classes, modes, same, sharing, projection_classes)
            for same in (False, True)
        )
        self.dropout = Dropout(dropout)
        self._make_weights(channels, heads * head_channels)
        for name, each in self.drawing().items():
            drawn = each.draw(head_channels)
            if each.is_learned and drawn is not None:
                self.register_parameter(name, nn.Parameter(drawn))
            else:
                self.register_buffer(name, drawn)

    @property
    def kernel(self) -> Kernel:
        """How the local classes compare queries and keys; the global ones, too, unless they were given their own."""
        return self.kernels[0]

    def drawing(self) -> dict[str, Kernel]:
        """The buffers of directions, by name."""
        first, second = self.kernels
        return {"directions": first} if first is second else {"directions": first, "directions_global": second}

    def _make_weights(self, channels: int, width: int) -> None:
        """Few large matrices: each holds all classes of a pattern, in the order of ``reading`` and ``writing``."""
        every = self.pooled = pooled(self.classes)
        self.reading = {p: [c for c in every if c.source == p] for p in dict.fromkeys(c.source for c in every)}
        self.writing = {p: [c for c in every if c.target == p] for p in dict.fromkeys(c.target for c in every)}
        pointwise = [c for c in self.classes if c.kind == "pointwise"]
        direct = {p: [c for c in pointwise if c.target == p] for p in dict.fromkeys(c.target for c in pointwise)}

        def lightweight(classes: Sequence[EquivalenceClass], out: int, bias: bool = True) -> PointwiseProjection:
            return PointwiseProjection(classes=classes, channels_in=channels, channels_out=out, bias=bias)

        in_place = self.projection_classes != "pointwise"
        into = {p: projecting(self.order_in, p, in_place) for p in {*self.reading, *self.writing}}
        asking = {p: 1 if "queries" in self.sharing else len(c) for p, c in self.writing.items()}
        asked = {p: len(pools(c)) if "keys" in self.sharing else len(c) for p, c in self.reading.items()}
        self.asked, self.asking = asked, {p: len(c) for p, c in self.writing.items()}
        self.query = nn.ModuleDict({module_name(p): lightweight(into[p], n * width) for p, n in asking.items()})
        self.key = nn.ModuleDict({module_name(p): lightweight(into[p], n * width) for p, n in asked.items()})
        self.pointwise = nn.ModuleDict({module_name(p): lightweight(c, channels, bias=False) for p, c in direct.items()})
        self.value = nn.ParameterDict({module_name(p): torch.empty(channels, n * width) for p, n in asked.items()})
        rank = channels if self.output_rank is None else self.output_rank
        self.output = nn.ParameterDict({module_name(p): torch.empty(len(c) * width, rank) for p, c in self.writing.items()})
        self.raised = nn.ParameterDict({name: torch.empty(rank, channels) for name in self.output if self.output_rank})
        for value in self.value.values():
            init_uniform(value, channels)
        for output in self.output.values():
            init_uniform(output, width)
        for raised in self.raised.values():
            init_uniform(raised, rank)

    def prepare(self, index: IndexSet, target: IndexSet | None = None) -> IndexSet:
        given, target = target, index.target(self.order_out, target)
        index.arrange()
        target.arrange()
        index.known(self._program(index, target), target)
        self.mark_prepared(index, given)
        return target

    def _program(self, index: IndexSet, target: IndexSet) -> Program:
        return self.program_same if index is target else self.program

    def forward(self, x: Features, target: IndexSet | None = None) -> Features:
        check_input(self, x, self.order_in, self.channels_in, next(self.parameters()))
        self.prepare_outside(x, target)
        target = x.index.target(self.order_out, target)
        program = self._program(x.index, target)
        read = x.index.split(x.rows)
        if self.recomputes(x, target):
            answers = _rows(self.asking, target) * self.heads * self.head_channels * x.rows.element_size()
            parts = in_parts(
                lambda part: self._run(part, x, target, read), program.parts or (program,), answers <= RECOMPUTED
            )
        else:
            parts = self._run(program, x, target, read)
        return Features.of_rows(target, target.assemble(parts))

    def _run(self, program: Program, x: Features, target: IndexSet, read: Parts) -> Parts:
        """The rows that a program writes, by pattern; ``read`` are those of ``x``."""
        phi = self.feature_maps()
        made: Made = {}
        parts: Parts = {}
        for step, known in zip(program.steps, x.index.known(program, target), strict=True):
            if isinstance(step, Project):
                self._cut(project(step, known, read, *self._weights(step)), step.columns, made, step.pattern)
            elif isinstance(step, Values):
                weight = self._columns(self.value[step.name], step.spans[0])
                self._cut(read[step.pattern] @ weight, step.columns, made, step.pattern)
            elif isinstance(step, Attend):
                self._attend(step, known, phi[step.is_global], made)
            elif isinstance(step, Combine):
                answers = [part for number in step.attends for part in made.pop(("received", number, step.pattern))]
                direct = made.get(("direct", -1, step.pattern), [None])[0]
                parts[step.pattern] = self._combine(step, known, answers, direct, x.rows)
        return parts

    def recomputes(self, x: Features, target: IndexSet) -> bool:
        """Whether a pass from these features to this index set goes part by part."""
        if torch.compiler.is_compiling():
            return False
        wanted = self.recompute
        if wanted is None:  # softmax takes care of it in tiles
            wanted = self.kernels[0].is_linear and self._kept(x, target) > RECOMPUTED
        return wanted and not is_transformed()

    def feature_maps(self) -> tuple[FeatureMap | None, FeatureMap | None]:
        """phi of the local and of the global classes."""
        local, other = self.kernels
        first = local.feature_map(getattr(self, "directions"))  # noqa: B009
        return first, first if other is local else other.feature_map(getattr(self, "directions_global"))  # noqa: B009

    def _weights(self, step: Project) -> tuple[Tensor | None, Tensor | None]:
        """The weight and bias of a step: those of queries, keys and the direct part side by side."""
        maps = {"query": self.query, "key": self.key, "direct": self.pointwise}
        if len(step.spans) == 1:
            only: Any = maps[step.spans[0].role][step.name]
            return self._columns(only.weight, step.spans[0]), self._columns(only.bias, step.spans[0])
        weights, biases = [], []
        for span in step.spans:
            each: Any = maps[span.role][step.name]
            weights.append(self._columns(each.weight, span))
            biases.append(each.weight.new_zeros(each.channels_out) if each.bias is None else self._columns(each.bias, span))
        return None if weights[0] is None else torch.cat(weights, 2), torch.cat(biases)

    def _columns(self, weight: Any, span: ColumnSpan) -> Any:
        """The columns that a step makes, of those of all classes."""
        count = self.heads * self.head_channels * span.classes
        if weight is None or span.role == "direct" or count == weight.shape[-1]:
            return weight
        return weight.narrow(-1, span.start * self.heads * self.head_channels, count)

    def _cut(self, rows: Tensor, columns: Sequence[ColumnSpan], made: Made, pattern: SetPartition) -> None:
        """Deal columns out to those who asked for them, all at once, so that gradients are put together in one step."""
        width = self.heads * self.head_channels
        parts: Sequence[Tensor] = (rows,)
        if len(columns) > 1:
            parts = rows.split_with_sizes(
                [self.channels_out if e.role == "direct" else e.classes * width for e in columns], 1
            )
        for each, part in zip(columns, parts, strict=True):
            whole = each.role == "direct"  # others are (entry, class, head, channel)
            shaped = part if whole else part.view(part.shape[0], each.classes, self.heads, self.head_channels)
            made[each.role, each.attend, pattern] = [shaped]

    def _attend(self, step: Attend, known: Any, features: FeatureMap | None, made: Made) -> None:
        """What the queries of some classes receive: rows by class, (entry, head x channel), for each target pattern."""
        number, source = step.number, step.pool.source
        (key,), (value,) = made.pop(("key", number, source)), made.pop(("value", number, source))
        attend, settings = self.kernels[step.is_global].attend, (key, value, features, self.normalize)
        if not step.shares_keys:
            [(pattern, count)] = step.targets
            received = attend(known, self._queries(number, pattern, count, made), *settings)
            made["received", number, pattern] = [received.flatten(1)]
            return
        queries = [self._queries(number, pattern, count, made) for pattern, count in step.targets]
        columns = [column.unsqueeze(1) for query in queries for column in query.unbind(1)]
        if isinstance(known, Grouped):
            answers = attend(known, torch.cat(columns), *settings).flatten(1).split([len(column) for column in columns])
        else:
            answers = [attend((some,), asking, *settings).flatten(1) for some, asking in zip(known, columns, strict=True)]
        for pattern, count in step.targets:
            made["received", number, pattern], answers = list(answers[:count]), answers[count:]

    def _queries(self, number: int, pattern: SetPartition, count: int, made: Made) -> Tensor:
        """(entry, class, head, channel)."""
        if "queries" not in self.sharing:
            return made.pop(("query", number, pattern))[0]
        return made["query", -1, pattern][0].expand(-1, count, -1, -1)

    def _combine(self, step: Combine, count: Any, received: list[Tensor], direct: Tensor | None, like: Tensor) -> Tensor:
        """One product for all classes: several narrow ones would each write the whole output."""
        if not received:
            return like.new_zeros(count, self.channels_out) if direct is None else direct
        wide = received[0] if len(received) == 1 else torch.cat(received, 1)
        wide = self.dropout(wide) if self.dropout.p else wide
        weight = self.output[step.name]
        if len(weight) != wide.shape[1]:
            weight = weight.narrow(0, step.start * self.heads * self.head_channels, wide.shape[1])
        if self.output_rank is not None:
            wide, weight = product(wide, weight), self.raised[step.name]
        return product(wide, weight) if direct is None else add_product(direct, wide, weight)

    def _kept(self, x: Features, target: IndexSet) -> int:
        """About how many bytes a forward pass keeps for the backward pass."""
        rows = 2 * _rows(self.asked, x.index) + 2 * _rows(self.asking, target)  # of keys and values, queries and answers
        number = x.rows.element_size() * (4 if self.coupling == "exact" else 1)  # in double, and a few times
        return rows * self.heads * self.head_channels * number

    def weights_of(self, cls: EquivalenceClass) -> dict[str, Tensor]:
        """Views of the weights of one class, to read or to set in place.

        A pointwise class has ``pointwise[in, out]``. Others have ``query`` and ``key`` [pointwise class, in, head, channel],
        their biases [head, channel], ``value[in, head, channel]`` and ``output[head, channel, out]``; a query of order 0 has
        a bias only, an output of low rank is ``output[head, channel, rank]`` and ``raised[rank, out]``. Classes that share
        weights have views of the same ones.
        """
        if cls not in self.classes:
            raise ValueError(f"this layer does not use the class {cls}")
        source, target = module_name(cls.source), module_name(cls.target)
        if cls.kind == "pointwise":
            direct: Any = self.pointwise[target]
            return {"pointwise": direct.weight[direct.classes.index(cls)]}
        split = (-1, self.heads, self.head_channels)
        write = self.writing[cls.target].index(cls)
        ask = 0 if "queries" in self.sharing else write
        shared = [*pools(self.reading[cls.source])]
        read = shared.index(cls.pool) if "keys" in self.sharing else self.reading[cls.source].index(cls)
        query: Any = self.query[target]
        key: Any = self.key[source]
        weights = {
            "query_bias": query.bias.unflatten(0, split)[ask],
            "key": key.weight.unflatten(2, split)[:, :, read],
            "key_bias": key.bias.unflatten(0, split)[read],
            "value": self.value[source].unflatten(1, split)[:, read],
            "output": self.output[target].unflatten(0, split)[write],
        }
        if query.weight is not None:
            weights["query"] = query.weight.unflatten(2, split)[:, :, ask]
        if self.output_rank is not None:
            weights["raised"] = self.raised[target]
        return weights

    def extra_repr(self) -> str:
        kernel = (
            self.kernel if self.kernels[0] is self.kernels[1] else dict(zip(("local", "global"), self.kernels, strict=True))
        )
        lean = "" if self.sharing == "none" else f", sharing={self.sharing!r}"
        lean += "" if self.output_rank is None else f", output_rank={self.output_rank}"
        return (
            f"{self.order_in} -> {self.order_out}, channels={self.channels_in}, heads={self.heads} x {self.head_channels}, "
            f"classes={len(self.classes)}, {kernel}, coupling={self.coupling!r}{lean}"
        )


def _rows(classes: dict[SetPartition, int], index: IndexSet) -> int:
    """All rows of an index set, times the number of classes of their pattern."""
    counts, total = index.counts(), 0
    for pattern, count in classes.items():
        total += counts[pattern] * count
    return total
