"""How time grows with the number of entries, for sparse layers that promise linear time: exponents of at most 1.1.

    OMP_NUM_THREADS=1 python benchmarks/exponents.py --entries 1000 10000 100000

EquivariantLinear 2->2 and 3->3, and an encoder 2->2->2->0 with kernel attention; forward pass, training step, and plan.
High orders, with the classes of k-WL (120 of the 4,140 from 4 to 4, 24 of the 203 from 3 to 3), linear and by attention, on
all tuples of distinct nodes of groups of eight; attention as it decides by itself (a million tuples are recomputed for the
backward pass, a hundred thousand are not), kept at all sizes, and recomputed at all sizes:

    OMP_NUM_THREADS=1 python benchmarks/exponents.py --high --entries 10000 100000 1000000

What does not depend on the size lowers the exponent of small inputs: that of the last two sizes stands below.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import permutations

import torch
from torch import nn

from anyorder import Encoder, EquivariantAttention, EquivariantLinear, Features, RandomFeatures, SparseIndexSet
from anyorder.bench import barabasi_albert, planning
from anyorder.bench.fits import exponent
from anyorder.bench.layer import compare, report
from anyorder.bench.models import Workload
from shared import parser, show, start, times

LIMIT = 1.1
CHANNELS = 8
GROUP = 8
NEIGHBOURHOODS = "distinct, match all but one"


def pairs(entries: int) -> SparseIndexSet:
    """A Barabasi-Albert graph with loops: eleven entries a node."""
    return barabasi_albert(entries * 10 // 11)


def triples(entries: int) -> SparseIndexSet:
    """Random triples over a tenth as many nodes; a tenth of them have two equal nodes, a twentieth three."""
    generator = torch.Generator().manual_seed(0)
    nodes = max(3, entries // 10)
    drawn = torch.randint(nodes, (entries + entries // 50, 3), generator=generator)
    kind = torch.rand(len(drawn), generator=generator)
    for number in range(3):  # one pattern of two equal axes after the other
        some = (kind >= number / 30) & (kind < (number + 1) / 30)
        drawn[some, (number + 1) % 3] = drawn[some, number]
    loops = kind > 0.95
    drawn[loops] = drawn[loops, :1].expand(-1, 3)
    return SparseIndexSet(torch.unique(drawn, dim=0)[:entries], num_nodes=nodes)


def groups(order: int, entries: int) -> SparseIndexSet:
    """All tuples of distinct nodes of each of many groups."""
    inside = torch.tensor(list(permutations(range(GROUP), order)))
    count = max(1, round(entries / len(inside)))
    tuples = (GROUP * torch.arange(count)[:, None, None] + inside).flatten(0, 1)
    return SparseIndexSet(tuples, num_nodes=GROUP * count)


def linear(order: int, classes: str = "all") -> nn.Module:
    sizes = {"channels_in": CHANNELS, "channels_out": CHANNELS}
    return EquivariantLinear(order_in=order, order_out=order, classes=classes, **sizes)


def attention(order: int, recompute: bool | None = None) -> nn.Module:
    sizes = {"channels": CHANNELS, "heads": 2, "head_channels": 4, "recompute": recompute}
    return EquivariantAttention(order_in=order, order_out=order, classes=NEIGHBOURHOODS, kernel=RandomFeatures(), **sizes)


def encoder() -> nn.Module:
    return Encoder(
        order_in=2,
        orders=(2, 2, 0),
        channels_in=CHANNELS,
        channels=32,
        channels_out=1,
        heads=4,
        head_channels=8,
        kernel=RandomFeatures(),
    )


ROWS: dict[str, tuple[Callable[[], nn.Module], Callable[[int], SparseIndexSet]]] = {
    "linear 2->2": (lambda: linear(2), pairs),
    "linear 3->3": (lambda: linear(3), triples),
    "kernel encoder": (encoder, pairs),
}
HIGH: dict[str, tuple[Callable[[], nn.Module], Callable[[int], SparseIndexSet]]] = {
    "linear 3->3, k-WL": (lambda: linear(3, NEIGHBOURHOODS), lambda entries: groups(3, entries)),
    "linear 4->4, k-WL": (lambda: linear(4, NEIGHBOURHOODS), lambda entries: groups(4, entries)),
    "attention 3->3, k-WL": (lambda: attention(3), lambda entries: groups(3, entries)),
    "attention 3->3, k-WL, kept": (lambda: attention(3, recompute=False), lambda entries: groups(3, entries)),
    "attention 3->3, k-WL, recomputed": (lambda: attention(3, recompute=True), lambda entries: groups(3, entries)),
}


def grow(name: str, options: argparse.Namespace) -> bool:
    """Print the table of one layer; say whether every exponent keeps the limit."""
    build, index_set = {**ROWS, **HIGH}[name]
    model = build()
    sizes, columns = [], []
    lines: list[tuple[str, ...]] = [(name, "nodes", "forward s", "step s", "plan s")]
    for entries in options.entries:
        index = index_set(entries)
        x = Features(index, torch.randn(index.num_entries, CHANNELS))
        work = Workload(model, lambda x=x: model(x).rows)  # type: ignore[misc]
        with planning() as spent:
            work.forward()
        sizes.append(index.num_entries)
        columns.append((*times([work], options)[0], getattr(spent, options.clock)))
        lines.append((f"{index.num_entries:,} entries", f"{index.num_nodes:,}", *(f"{value:.4f}" for value in columns[-1])))
    powers = [exponent(sizes, column) for column in zip(*columns, strict=True)]
    ends = [exponent(sizes[-2:], column[-2:]) for column in zip(*columns, strict=True)]
    lines.append(("exponent", "", *(f"{power:.2f}" for power in powers)))
    lines.append(("of the last two sizes", "", *(f"{power:.2f}" for power in ends)))
    show(lines)
    if options.high:
        print(report([compare(f"forward, {sizes[-1]:,} entries", work.forward), compare("step", work.step)]), flush=True)
    return max(powers) <= LIMIT


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--entries", type=int, nargs="+", default=[1_000, 3_000, 10_000, 30_000, 100_000])
    options.add_argument("--high", action="store_true", help="layers of orders 3 and 4")
    options.add_argument("--rows", nargs="+", choices=[*ROWS, *HIGH], help="default: all, or with --high all of these")
    chosen = options.parse_args()
    chosen.rows = chosen.rows or list(HIGH if chosen.high else ROWS)
    start(chosen, "Time against entries, fitted by least squares in logarithms")
    kept = {name: grow(name, chosen) for name in chosen.rows}
    for name, good in kept.items():
        print(f"{name}: every exponent {'at most' if good else 'NOT at most'} {LIMIT}")


if __name__ == "__main__":
    main()
