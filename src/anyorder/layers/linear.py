"""Every permutation-equivariant linear map between two orders, in linear time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from anyorder.algebra import EquivalenceClass, Pool, Selection, SetPartition, expansion, pools, select, set_partitions
from anyorder.layers.checks import check_input, check_orders, check_positive
from anyorder.layers.projection import Parts, init_uniform, project
from anyorder.layouts import Features, IndexSet, Plan, Spread
from anyorder.ops.gather import add_spread

Reduce = Literal["sum", "mean"]


class EquivariantLinear(nn.Module):
    r"""Every permutation-equivariant linear map from order k to order l (Eq. 1).

    .. math:: Y_j = \sum_\mu \sum_i B^\mu_{ij} X_i W_\mu + b_{\lambda(j)}

    The sum over i runs over the entries of the input's index set. With ``reduce="mean"`` each class divides its sum by the
    number of entries that (i, j) in mu allows. ``weight[class, in, out]`` is in the order of ``classes``;
    ``bias[target pattern, out]`` is in the order of ``set_partitions(order_out)``.

    >>> layer = EquivariantLinear(order_in=2, order_out=2, channels_in=3, channels_out=4)
    >>> layer.weight.shape, layer.bias.shape
    (torch.Size([15, 3, 4]), torch.Size([2, 4]))
    """

    signs: Tensor

    def __init__(
        self,
        *,
        order_in: int,
        order_out: int,
        channels_in: int,
        channels_out: int,
        classes: Selection = "all",
        reduce: Reduce = "sum",
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
        self.weight = nn.Parameter(torch.empty(len(self.classes), channels_in, channels_out))
        self.bias = nn.Parameter(torch.empty(len(self.patterns), channels_out)) if bias else None
        self.terms, signs = _terms(self.classes)
        self.register_buffer("signs", signs, persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init_uniform(self.weight, self.channels_in)
        if self.bias is not None:
            init_uniform(self.bias, self.channels_in)

    def prepare(self, index: IndexSet, target: IndexSet | None = None) -> IndexSet:
        """Work out now what a pass over ``index`` needs to know of it; returns the index set that the layer writes to."""
        target = index.target(self.order_out, target)
        plan = index.plan(target)
        index.arrange()
        target.arrange()
        for term in self.terms:
            if term.kind == "pointwise":
                plan.pointwise(term)
            else:
                plan.spread(term)
        if self.reduce == "mean":
            for cls in self.classes:
                plan.members(cls, "exact")
        return target

    def forward(self, x: Features, target: IndexSet | None = None) -> Features:
        check_input(self, x, self.order_in, self.channels_in, self.weight)
        target = x.target(self.order_out, target)
        parts = self.map_parts(x.index.plan(target), x.index.split(x.rows))
        return Features.of_rows(target, target.assemble(parts, like=x.rows.new_empty(0, self.channels_out)))

    def map_parts(self, plan: Plan, parts: Parts) -> Parts:
        """The rows of each output pattern from those of each input pattern."""
        biases = {} if self.bias is None else dict(zip(self.patterns, self.bias, strict=True))
        made = self._sum(plan, parts, biases) if self.reduce == "sum" else self._mean(plan, parts)
        for pattern in self.patterns:
            bias, count = biases.get(pattern), len(plan.target.entries(pattern))  # one that no product has taken along
            if pattern not in made:
                made[pattern] = self.weight.new_zeros(count, self.channels_out) if bias is None else bias.expand(count, -1)
            elif bias is not None:
                made[pattern] = made[pattern] + bias
        return made

    def _sum(self, plan: Plan, parts: Parts, biases: Parts) -> Parts:
        """Sums over exact classes, as sums with equalities only under weights that are recombined once.

        Takes the biases that it adds out of ``biases``.
        """
        weight = torch.einsum("tc,cio->tio", self.signs.to(self.weight.dtype), self.weight)
        place = {term: n for n, term in enumerate(self.terms)}
        waiting = Waiting()
        direct: Parts = {}
        for pattern in self.patterns:
            into = [term for term in self.terms if term.kind == "pointwise" and term.target == pattern]
            if into and len(plan.target.entries(pattern)):
                chosen = weight[[place[term] for term in into]]
                direct[pattern] = project(plan, pattern, parts, into, chosen, biases.pop(pattern, None))
        for pool, terms in pools(term for term in self.terms if term.kind != "pointwise").items():
            if len(parts[pool.source]) == 0:
                continue
            pooled = pool_rows(plan, pool, parts)
            chosen = weight[[place[term] for term in terms]]
            moved = (pooled @ chosen.transpose(0, 1).flatten(1)).unflatten(1, (len(terms), self.channels_out))
            for n, term in enumerate(terms):
                waiting.add(plan, term, moved[:, n])
        return waiting.spread(direct)

    def _mean(self, plan: Plan, parts: Parts) -> Parts:
        """Sums over exact classes, each divided by its number of members."""
        made: Parts = {}
        precise = {pattern: rows.double() for pattern, rows in parts.items()}
        for cls, weight in zip(self.classes, self.weight, strict=True):
            if len(plan.target.entries(cls.target)) == 0:
                continue
            total = exact_sum(plan, cls, precise).to(weight.dtype)
            members = plan.members(cls, "exact")
            part = (total / members.clamp(min=1).unsqueeze(1)) @ weight
            made[cls.target] = made[cls.target] + part if cls.target in made else part
        return made

    def extra_repr(self) -> str:
        return (
            f"{self.order_in} -> {self.order_out}, {self.channels_in} -> {self.channels_out}, "
            f"classes={len(self.classes)}, reduce={self.reduce!r}"
        )


def _terms(classes: tuple[EquivalenceClass, ...]) -> tuple[tuple[EquivalenceClass, ...], Tensor]:
    """The equality-only terms of some classes, and the sign of each class in each term: W'_tau = sum sign W_sigma."""
    signed = {(term, n): sign for n, cls in enumerate(classes) for sign, term in expansion(cls)}
    terms = tuple(dict.fromkeys(term for term, _ in signed))
    place = {term: n for n, term in enumerate(terms)}
    signs = torch.zeros(len(terms), len(classes))
    for (term, n), sign in signed.items():
        signs[place[term], n] = sign
    return terms, signs


def pool_rows(plan: Plan, pool: Pool, parts: Parts) -> Tensor:
    """Sums of input rows over the groups of a pool; a pool by all blocks has groups of one and sums nothing."""
    rows = parts[pool.source]
    if len(pool.blocks) == pool.source.num_blocks:
        return rows
    groups = plan.groups(pool)
    return rows.new_zeros(groups.num_groups, rows.shape[1]).index_add(0, groups.ids, rows)


def exact_sum(plan: Plan, cls: EquivalenceClass, parts: Parts) -> Tensor:
    """The sum of input rows over exactly {i : (i, j) in mu}, for each output entry j of the class."""
    rows = parts[cls.source]
    total = rows.new_zeros(len(plan.target.entries(cls.target)), rows.shape[1])
    for sign, term in expansion(cls):
        pooled = pool_rows(plan, Pool(term.source, term.matched_source), parts)
        spread = plan.pointwise(term) if term.kind == "pointwise" else plan.spread(term)
        total = total + sign * spread(pooled)
    return total


def lightweight_mlp(
    widen: EquivariantLinear, narrow: EquivariantLinear, between: Callable[[Tensor], Tensor], x: Features
) -> Tensor:
    """Rows of two maps from an index set to itself with something between them, pattern by pattern throughout."""
    check_input(widen, x, widen.order_in, widen.channels_in, widen.weight)
    plan = x.index.plan(x.index)
    hidden = {pattern: between(rows) for pattern, rows in widen.map_parts(plan, x.index.split(x.rows)).items()}
    return x.index.assemble(narrow.map_parts(plan, hidden), like=x.rows.new_empty(0, narrow.channels_out))


class Waiting:
    """Results that wait to be spread to output entries.

    Results by node or by graph that are read through the same output nodes are added up before they are spread.
    """

    def __init__(self) -> None:
        self._sums: dict[object, tuple[SetPartition, Spread, Tensor]] = {}

    def add(self, plan: Plan, term: EquivalenceClass, values: Tensor) -> None:
        if len(plan.target.entries(term.target)) == 0:
            return
        key = (term.target, term.matched_target) if len(term.matching) < 2 else term
        if key in self._sums:
            pattern, spread, known = self._sums[key]
            self._sums[key] = (pattern, spread, known + values)
        else:
            self._sums[key] = (term.target, plan.spread(term), values)

    def spread(self, parts: Parts) -> Parts:
        """Add what waits to the rows of each output pattern."""
        parts = dict(parts)
        for pattern in dict.fromkeys(pattern for pattern, _, _ in self._sums.values()):
            waiting = [(values, spread) for other, spread, values in self._sums.values() if other == pattern]
            total = add_spread(parts.get(pattern), waiting)
            assert total is not None
            parts[pattern] = total
        return parts
