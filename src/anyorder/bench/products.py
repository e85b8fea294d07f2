"""The matrix products that a piece of work carries out, and how long they take alone."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from anyorder.bench.measure import Clock, measure

_PLACES = {"mm": 0, "addmm": 1, "addmm_": 1, "bmm": 0, "baddbmm": 1, "baddbmm_": 1}
"""Where the left factor stands among the arguments; the first of three is what is added."""


@dataclass(frozen=True, order=True)
class Product:
    """A matrix product, or a batch of them: (rows x inner) times (inner x columns).

    ``turned`` says which factors are transposes of what lies in memory. ``inside`` names the operator that does the product
    as a part of its own loops, where it never appears as a matrix product.

    >>> print(Product(100, 32, 64))
    100 x 32 x 64
    """

    rows: int
    inner: int
    columns: int
    batch: int = 1
    turned: tuple[bool, bool] = (False, False)
    added: bool = False
    inside: str = ""

    @property
    def operations(self) -> int:
        """Additions and multiplications."""
        return 2 * self.batch * self.rows * self.inner * self.columns

    def factors(self) -> tuple[Tensor, Tensor]:
        """Random factors that lie in memory as those of the product did."""
        shapes = ((self.rows, self.inner), (self.inner, self.columns))
        lead = () if self.batch == 1 else (self.batch,)
        left, right = (
            torch.randn(*lead, *(shape[::-1] if turned else shape)).transpose(-1, -2 if turned else -1)
            for shape, turned in zip(shapes, self.turned, strict=True)
        )
        return left, right

    def __str__(self) -> str:
        times = f"{self.batch} of " if self.batch > 1 else ""
        where = f" ({self.inside})" if self.inside else ""
        return f"{times}{self.rows} x {self.inner} x {self.columns}{where}"


def executed_products(work: Callable[[], object]) -> Counter[Product]:
    """The matrix products of one call, with how often each was done; those inside operators and backward passes too.

    >>> executed_products(lambda: torch.ones(2, 3) @ torch.ones(3, 4))
    Counter({Product(rows=2, inner=3, columns=4, batch=1, turned=(False, False), added=False, inside=''): 1})
    """
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profiler:
        work()
    return Counter(product for event in profiler.events() for product in _products(event))


def time_products(products: Counter[Product], *, clock: Clock = "cpu", reuse: bool = False, budget: float = 0.3) -> float:
    """Seconds that the products take one after the other, on random factors.

    With ``reuse`` each writes to memory that is there already; otherwise to new memory, as a layer does.
    """
    total = 0.0
    for product, count in products.items():
        left, right = product.factors()
        room = torch.empty(*left.shape[:-1], product.columns) if reuse else None
        added = torch.zeros(product.columns) if product.added and product.batch == 1 else None
        total += count * measure(_multiplication(left, right, added, room), budget=budget).of(clock)
    return total


def _multiplication(left: Tensor, right: Tensor, added: Tensor | None, room: Tensor | None) -> Callable[[], object]:
    if added is not None:
        return lambda: torch.addmm(added, left, right, out=room)
    return lambda: torch.matmul(left, right, out=room)


def _products(event: Any) -> Iterator[Product]:
    space, _, name = event.name.partition("::")
    shapes = event.input_shapes
    if space == "aten" and name in _PLACES and not _is_inside(event):
        place = _PLACES[name]
        yield from _plain(shapes[place : place + 2], _strides(event, place), added=place == 1)
    elif name == "_scaled_dot_product_flash_attention_for_cpu":
        yield from _softmax(*shapes[:3])
    elif name == "_scaled_dot_product_flash_attention_for_cpu_backward":
        yield from _softmax_backward(*shapes[1:4])
    elif name == "segment_attention":
        yield from _segments(shapes)
    elif name == "segment_attention_backward":
        yield from _segments_backward(shapes)


def _is_inside(event: Any) -> bool:
    """Whether an operator of ours does a product, which is counted as the operator's own."""
    above = event.cpu_parent
    while above is not None and "segment_attention" not in above.name:
        above = above.cpu_parent
    return above is not None


def _strides(event: Any, place: int) -> Sequence[Sequence[int]]:
    known = getattr(event, "structured_input_strides", None)  # not in older versions of torch
    return known[place : place + 2] if known else ((), ())


def _plain(shapes: Sequence[Sequence[int]], strides: Sequence[Sequence[int]], *, added: bool) -> Iterator[Product]:
    (*lead, rows, inner), (*_, columns) = shapes
    turned = tuple(len(step) > 1 and step[-2] == 1 and step[-1] > 1 for step in strides)
    if rows and inner and columns and all(lead):
        yield Product(rows, inner, columns, lead[0] if lead else 1, turned, added)  # type: ignore[arg-type]


def _named(name: str, products: Iterable[Product]) -> Iterator[Product]:
    return (replace(product, inside=name) for product in products if product.operations)


def _softmax(query: Sequence[int], key: Sequence[int], value: Sequence[int]) -> Iterator[Product]:
    """Scores and answers of softmax attention on (batch, head, entry, channel)."""
    batch, queries, keys = query[0] * query[1], query[2], key[2]
    turned = Product(queries, query[3], keys, batch, (False, True))
    return _named("softmax", (turned, Product(queries, keys, value[3], batch)))


def _softmax_backward(query: Sequence[int], key: Sequence[int], value: Sequence[int]) -> Iterator[Product]:
    """The scores again, and the gradients of weights, values, queries and keys."""
    batch, queries, keys, width = query[0] * query[1], query[2], key[2], query[3]
    return _named(
        "softmax",
        (
            Product(queries, width, keys, batch, (False, True)),
            Product(queries, value[3], keys, batch, (False, True)),
            Product(keys, queries, value[3], batch, (True, False)),
            Product(queries, keys, width, batch),
            Product(keys, queries, width, batch, (True, False)),
        ),
    )


@dataclass(frozen=True)
class _Groups:
    """Segment attention with groups of average size: (query, class, head, channel), (key, ...), (value, ...)."""

    query_rows: int
    key_rows: int
    width: int
    value_width: int
    features: int
    mapped: bool
    query_group: int
    key_group: int

    @classmethod
    def of(cls, shapes: Sequence[Sequence[int]]) -> _Groups:
        query, key, value, directions = shapes[:4]
        groups, parts = max(1, shapes[5][0] - 1), query[1] * query[2]
        sizes = [max(1, round(rows / groups)) for rows in (query[0], key[0])]
        features = directions[0] if directions else query[3]
        return cls(query[0] * parts, key[0] * parts, query[3], value[3], features, bool(directions), *sizes)

    def maps(self, back: bool = False) -> list[Product]:
        """Features of queries and keys, or their gradients."""
        shape = (self.features, self.width) if back else (self.width, self.features)
        return [Product(rows, *shape) for rows in (self.query_rows, self.key_rows)] if self.mapped else []

    def by_query(self, rows: int, inner: int, columns: int) -> Product:
        return Product(rows, inner, columns, batch=max(1, self.query_rows // self.query_group))

    def by_key(self, rows: int, inner: int, columns: int) -> Product:
        return Product(rows, inner, columns, batch=max(1, self.key_rows // self.key_group))


def _segments(shapes: Sequence[Sequence[int]]) -> Iterator[Product]:
    """phi(K), phi(Q), phi(K)^T V and phi(Q) times it."""
    g = _Groups.of(shapes)
    states = g.by_key(g.features, g.key_group, g.value_width)
    return _named("segments", (*g.maps(), states, g.by_query(g.query_group, g.features, g.value_width)))


def _segments_backward(shapes: Sequence[Sequence[int]]) -> Iterator[Product]:
    """Features and states again, then the gradients of states, features, values, queries and keys."""
    g = _Groups.of(shapes)
    return _named(
        "segments",
        (
            *g.maps(),
            g.by_key(g.features, g.key_group, g.value_width),
            g.by_query(g.features, g.query_group, g.value_width),
            g.by_query(g.query_group, g.value_width, g.features),
            g.by_key(g.key_group, g.value_width, g.features),
            g.by_key(g.key_group, g.features, g.value_width),
            *g.maps(back=True),
        ),
    )
