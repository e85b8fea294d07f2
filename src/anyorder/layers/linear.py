"""Every permutation-equivariant linear map between two orders, in linear time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn

from anyorder.algebra import EquivalenceClass, Selection, linear_program, select, set_partitions
from anyorder.algebra.linear_steps import linear_terms
from anyorder.algebra.program import Average, Deliver, Project, Reduce, Step
from anyorder.layers.module import FeatureModule, check_input, check_orders, check_positive
from anyorder.layers.projection import init_uniform
from anyorder.layouts import Features, Groups, IndexSet
from anyorder.ops.gather import Parts, add_spread, product, project, read_rows

Reduction = Literal["sum", "mean"]


class EquivariantLinear(FeatureModule):
    r"""Every permutation-equivariant linear map from order k to order l (Eq. 1).

    .. math:: Y_j = \sum_\mu \sum_i B^\mu_{ij} X_i W_\mu + b_{\lambda(j)}

    The sum over i runs over the entries of the input's index set. With ``reduce="mean"`` each class divides its sum by the
    number of entries that (i, j) in mu allows. ``weight[class, in, out]`` is in the order of ``classes``;
    ``bias[target pattern, out]`` is in the order of ``set_partitions(order_out)``.

    ``print(layer.program)`` shows what a forward pass does.

    >>> layer = EquivariantLinear(order_in=2, order_out=2, channels_in=3, channels_out=4)
    >>> layer.weight.shape, layer.bias.shape
    (torch.Size([15, 3, 4]), torch.Size([2, 4]))

    Args:
        order_in, order_out: k and l.
        channels_in, channels_out: widths.
        classes: which equivalence classes to use: names, a predicate or the classes.
        reduce: take the sum or the mean over the entries of a class.
        bias: add a learned vector for each target pattern.
    """

    def __init__(
        self,
        *,
        order_in: int,
        order_out: int,
        channels_in: int,
        channels_out: int,
        classes: Selection = "all",
        reduce: Reduction = "sum",
        bias: bool = True,
    ) -> None:
        super().__init__()
        check_orders(order_in=order_in, order_out=order_out)
        check_positive(channels_in=channels_in, channels_out=channels_out)
        if reduce not in ("sum", "mean"):
            raise ValueError(f"reduce must be 'sum' or 'mean', got {reduce!r}")
        self.order_in, self.order_out = order_in, order_out
        self.channels_in, self.channels_out = channels_in, channels_out
        self.reduce = reduce
        self.classes = select(order_in, order_out, classes)
        self.patterns = set_partitions(order_out)
        self.program = linear_program(order_in, order_out, self.classes, reduce)
        self.weight = nn.Parameter(torch.empty(len(self.classes), channels_in, channels_out))
        self.bias = nn.Parameter(torch.empty(len(self.patterns), channels_out)) if bias else None
        self.terms = linear_terms(self.classes)[0] if reduce == "sum" else ()
        signs = _signs(self.classes) if reduce == "sum" else None
        self.register_buffer("signs", signs, persistent=False)
        self._picked = [_numbers(step) for step in self.program.steps]
        self.reset_parameters()

    signs: Tensor | None

    def reset_parameters(self) -> None:
        """Draw new weights."""
        init_uniform(self.weight, self.channels_in)
        if self.bias is not None:
            init_uniform(self.bias, self.channels_in)

    @torch.no_grad()
    def keep_variance(self, gain: float = 1.0) -> None:
        """Draw weights whose outputs have about ``gain`` times the mean square of the inputs, at any number of nodes.

        Means over many entries are smaller than entries, between 1 / pi (of what a ReLU leaves of independent ones) and 1
        of their mean square: pointwise classes have two thirds of the weight, means one third. Sums grow with the number
        of nodes: beside pointwise classes they begin at 0; where there are none, they are drawn for 100 nodes.
        """
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        for pattern in self.patterns:
            own = [n for n, cls in enumerate(self.classes) if cls.target == pattern]
            direct = [n for n in own if self.classes[n].kind == "pointwise"]
            pooled = [n for n in own if self.classes[n].kind != "pointwise"]
            both = bool(direct and pooled) and self.reduce == "mean"
            square = gain / (self.channels_in * (1.325 if both else 1.0))  # 1 + 0.65 / 2, 0.65 between 1 / pi and 1
            for n in direct:
                self.weight[n].normal_(std=(square / len(direct)) ** 0.5)
            for n in pooled:
                share = (
                    1.0
                    if self.reduce == "mean"
                    else 0.0
                    if direct
                    else 100.0 ** (-2 * len(self.classes[n].unmatched_source))
                )
                self.weight[n].normal_(std=(square * share * (0.5 if both else 1.0) / len(pooled)) ** 0.5)

    def prepare(self, index: IndexSet, target: IndexSet | None = None) -> IndexSet:
        given, target = target, index.target(self.order_out, target)
        index.arrange()
        target.arrange()
        index.known(self.program, target)
        for pattern in self.patterns:
            target.entries(pattern)
        self.mark_prepared(index, given)
        return target

    def forward(self, x: Features, target: IndexSet | None = None) -> Features:
        check_input(self, x, self.order_in, self.channels_in, self.weight)
        self.prepare_outside(x, target)
        target = x.target(self.order_out, target)
        parts = self.map_parts(x.index, target, x.index.split(x.rows))
        return Features.of_rows(target, target.assemble(parts))

    def map_parts(self, index: IndexSet, target: IndexSet, parts: Parts) -> Parts:
        """The rows of each pattern of ``target`` from those of each pattern of ``index``."""
        biases = dict(zip(self.patterns, self.bias.unbind(0), strict=True)) if self.bias is not None else {}
        weight: Tensor = self.weight
        if self.signs is not None:  # sums over exact classes are sums with equalities only, under recombined weights
            weight = torch.einsum("tc,cio->tio", self.signs.to(weight.dtype), weight)
        made: Parts = {}
        pooled: list[Tensor] = []
        moved: dict[int, Tensor] = {}
        for step, known, numbers in zip(self.program.steps, index.known(self.program, target), self._picked, strict=True):
            if isinstance(step, Project):
                own, bias = _pick(weight, numbers), biases.pop(step.pattern, None)
                made[step.pattern] = project(step, known, parts, own, bias)
            elif isinstance(step, Reduce):
                rows = parts[step.pool.source] if step.terms else parts[step.pool.source].double()
                pooled.append(pool_rows(rows, known))
                if step.terms:
                    tall = _pick(weight, numbers).transpose(0, 1).flatten(1)
                    columns = product(pooled[-1], tall).unflatten(1, (len(step.terms), self.channels_out))
                    moved.update(zip(step.terms, columns.unbind(1), strict=True))
            elif isinstance(step, Deliver):
                made[step.pattern] = self._deliver(step, known, moved, made.get(step.pattern))
            elif isinstance(step, Average):
                part = product(self._average(known, pooled), weight[step.number])
                made[step.cls.target] = made[step.cls.target] + part if step.cls.target in made else part
        return {
            pattern: self._with_bias(made.get(pattern), biases.get(pattern), pattern, target) for pattern in self.patterns
        }

    def _deliver(self, step: Deliver, known: Any, moved: dict[int, Tensor], total: Tensor | None) -> Tensor:
        """Results by node or by graph that are read through the same output nodes are added up before they are gathered."""
        reads = []
        for (_, terms), spread in zip(step.reads, known, strict=True):
            values = moved[terms[0]]
            for term in terms[1:]:
                values = values + moved[term]
            reads.append((values, spread))
        total = add_spread(total, reads)
        assert total is not None
        return total

    def _average(self, known: Any, pooled: list[Tensor]) -> Tensor:
        """The exact sum of a class over its number of members; sums are in double, as small differences of large ones."""
        terms, members = known
        total: Tensor | None = None
        for sign, spread, number in terms:
            part = read_rows(pooled[number], spread)
            part = part if sign > 0 else -part
            total = part if total is None else total + part
        assert total is not None
        return (total / members).to(self.weight.dtype)

    def _with_bias(self, made: Tensor | None, bias: Tensor | None, pattern: Any, target: IndexSet) -> Tensor:
        """Rows with a bias that no product has taken along."""
        if made is None:
            count = target.entries(pattern).count
            return self.weight.new_zeros(count, self.channels_out) if bias is None else bias.expand(count, -1)
        return made if bias is None else made + bias

    def extra_repr(self) -> str:
        return (
            f"{self.order_in} -> {self.order_out}, {self.channels_in} -> {self.channels_out}, "
            f"classes={len(self.classes)}, reduce={self.reduce!r}"
        )


def _signs(classes: tuple[EquivalenceClass, ...]) -> Tensor | None:
    """(term, class): the sign of each class in each term, W'_tau = sum sign W_sigma; None where each class is one term."""
    terms, parts = linear_terms(classes)
    if len(parts) == len(classes):
        return None
    signs = torch.zeros(len(terms), len(classes))
    for term, number, sign in parts:
        signs[term, number] = sign
    return signs


def _numbers(step: Step) -> list[int] | slice:
    """Which of the matrices a step uses."""
    some = list(step.numbers if isinstance(step, Project) else step.terms if isinstance(step, Reduce) else ())
    return slice(some[0], some[0] + len(some)) if some and some == list(range(some[0], some[0] + len(some))) else some


def _pick(weight: Tensor, numbers: list[int] | slice) -> Tensor:
    """Some matrices; neighbours are a view, whose gradient is cheaper than that of an index."""
    if isinstance(numbers, slice) and numbers.stop - numbers.start == len(weight):
        return weight
    return weight[numbers]


def pool_rows(rows: Tensor, groups: object) -> Tensor:
    """Sums of rows over groups; without groups each row is one of its own."""
    if groups is None:
        return rows
    assert isinstance(groups, Groups)
    return rows.new_zeros(groups.num_groups, rows.shape[1]).index_add(0, groups.ids, rows)


def lightweight_mlp(
    widen: EquivariantLinear, narrow: EquivariantLinear, between: Callable[[Tensor], Tensor], x: Features
) -> Tensor:
    """Rows of two maps from an index set to itself with something between them, pattern by pattern throughout."""
    check_input(widen, x, widen.order_in, widen.channels_in, widen.weight)
    wide = widen.map_parts(x.index, x.index, x.index.split(x.rows))
    hidden = {pattern: between(rows) for pattern, rows in wide.items()}
    return x.index.assemble(narrow.map_parts(x.index, x.index, hidden))
