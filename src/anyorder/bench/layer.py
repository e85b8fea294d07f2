"""A layer beside its own matrix products."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import torch

from anyorder.algebra import Lightweight, Projecting, Sharing
from anyorder.bench.fits import aligned
from anyorder.bench.graphs import barabasi_albert
from anyorder.bench.measure import Clock, Timing, measure
from anyorder.bench.products import Product, executed_products, time_products
from anyorder.layers import EncoderLayer, RandomFeatures
from anyorder.layers.named_kernels import Coupling
from anyorder.layouts import Features


@dataclass(frozen=True)
class Comparison:
    """The time of a piece of work, and of its matrix products alone."""

    name: str
    work: Timing
    products: Counter[Product]
    clock: Clock
    seconds: float
    """Its products on the same shapes, each into new memory."""
    reused: float
    """The same into memory that is there already."""
    inside: float
    """The products that its operators stand for, as separate matrix products."""

    @property
    def ratio(self) -> float:
        """The work in units of its visible products."""
        return self.work.of(self.clock) / self.seconds

    @property
    def ratio_with_inside(self) -> float:
        """The work in units of all products, those inside operators counted."""
        return self.work.of(self.clock) / (self.seconds + self.inside)


def compare(name: str, work: Callable[[], object], *, clock: Clock = "cpu", repeats: int | None = None) -> Comparison:
    """Time some work, before and after the matrix products that it does."""
    before = measure(work, repeats=repeats)
    products = executed_products(work)
    plain = Counter({product: count for product, count in products.items() if not product.inside})
    inside = Counter({product: count for product, count in products.items() if product.inside})
    if not plain:
        raise ValueError(f"{name} does no matrix products to compare it with")
    alone, reused = (time_products(plain, clock=clock, reuse=reuse) for reuse in (False, True))
    operators = time_products(inside, clock=clock)
    after = measure(work, repeats=repeats)
    timing = Timing((before.wall + after.wall) / 2, (before.cpu + after.cpu) / 2, before.repeats + after.repeats)
    return Comparison(name, timing, products, clock, alone, reused, operators)


def encoder_layer(
    *,
    channels: int,
    edges: int,
    heads: int = 4,
    head_channels: int = 8,
    coupling: Coupling = "relaxed",
    classes: str = "all",
    sharing: Sharing = "none",
    projection_classes: Projecting = "pointwise",
    output_rank: int | None = None,
    mlp_classes: Lightweight = "pointwise",
    direct: bool = True,
    channels_hidden: int | None = None,
    seed: int = 0,
) -> tuple[EncoderLayer, Features]:
    """Enc_2->2(channels, head_channels, heads) with a kernel, and features on a Barabasi-Albert graph."""
    torch.manual_seed(seed)
    layer = EncoderLayer(
        order_in=2,
        order_out=2,
        channels=channels,
        heads=heads,
        head_channels=head_channels,
        kernel=RandomFeatures(),
        coupling=coupling,
        classes=classes,
        sharing=sharing,
        projection_classes=projection_classes,
        output_rank=output_rank,
        mlp_classes=mlp_classes,
        direct=direct,
        channels_hidden=channels_hidden,
    )
    index = barabasi_albert(edges, seed=seed)
    return layer, Features(index, torch.randn(index.num_entries, channels))


def compare_layer(layer: EncoderLayer, x: Features, *, step: bool = False, clock: Clock = "cpu") -> list[Comparison]:
    """Forward pass without gradients, and with ``step`` forward and backward, beside their products."""

    def forward() -> None:
        with torch.no_grad():
            layer(x)

    def train() -> None:
        layer.zero_grad()
        layer(x).rows.square().mean().backward()

    found = [compare("forward", forward, clock=clock)]
    return [*found, compare("training step", train, clock=clock)] if step else found


def report(found: list[Comparison]) -> str:
    """A table of comparisons."""
    lines = [("", "work s", "products s", "ratio", "reusing memory s", "inside operators s", "ratio with these")]
    lines += [
        (
            each.name,
            f"{each.work.of(each.clock):.4f}",
            f"{each.seconds:.4f}",
            f"{each.ratio:.2f}",
            f"{each.reused:.4f}",
            f"{each.inside:.4f}",
            f"{each.ratio_with_inside:.2f}",
        )
        for each in found
    ]
    return aligned(lines)


def list_products(products: Counter[Product], most: int = 20) -> str:
    """The shapes, those with the most arithmetic first."""
    by_cost = sorted(products.items(), key=lambda item: -item[1] * item[0].operations)
    lines = [("rows x inner x columns", "times", "MFLOP")]
    lines += [(str(product), str(count), f"{count * product.operations / 1e6:,.1f}") for product, count in by_cost[:most]]
    if len(by_cost) > most:
        rest = by_cost[most:]
        operations = sum(count * product.operations for product, count in rest)
        lines.append((f"{len(rest)} other shapes", str(sum(count for _, count in rest)), f"{operations / 1e6:,.1f}"))
    return aligned(lines)
