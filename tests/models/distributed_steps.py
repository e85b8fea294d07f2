"""One process of several: three steps of a model wrapped in each way, beside the same steps in this process alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.nn.parallel import DistributedDataParallel

from anyorder import Encoder, Features, RandomFeatures, SparseIndexSet, collate

STEPS = 3


def graph(seed: int) -> Features:
    """A random graph; every third has no loops, so that a batch may leave weights without anything to do."""
    generator = torch.Generator().manual_seed(seed)
    nodes = 4 + seed % 3
    pairs = torch.rand(nodes, nodes, generator=generator) < 0.5
    pairs.fill_diagonal_(seed % 3 != 0)
    index = SparseIndexSet(pairs.nonzero(), num_nodes=nodes)
    return Features(index, torch.randn(index.num_entries, 3, generator=generator, dtype=torch.float64))


def batch(step: int, rank: int, per_process: int) -> Features:
    first = step * dist.get_world_size() * 2 + rank * per_process
    return collate([graph(number) for number in range(first, first + per_process)])


def model() -> Encoder:
    torch.manual_seed(0)
    return Encoder(
        order_in=2,
        orders=(2, 0),
        channels_in=3,
        channels=8,
        channels_out=1,
        heads=2,
        head_channels=4,
        kernel=RandomFeatures(),
    ).double()


def train(wrapped: nn.Module, batches: Callable[[int], list[Features]]) -> None:
    optimiser = torch.optim.SGD(wrapped.parameters(), lr=0.1)
    for step in range(STEPS):
        optimiser.zero_grad()
        parts = batches(step)
        for number, part in enumerate(parts):
            with held(wrapped, number + 1 < len(parts)):
                (wrapped(part).rows.square().mean() / len(parts)).backward()
        optimiser.step()


@contextmanager
def held(wrapped: nn.Module, hold: bool) -> Iterator[None]:
    """Gradients are added up in each process while ``hold``, and exchanged after."""
    if isinstance(wrapped, FSDPModule):
        wrapped.set_requires_gradient_sync(not hold)
    waits = hold and isinstance(wrapped, DistributedDataParallel)
    with wrapped.no_sync() if waits else nullcontext():  # type: ignore[operator]
        yield


def alone() -> list[Tensor]:
    one, world = model(), dist.get_world_size()
    train(one, lambda step: [batch(step, rank, 2) for rank in range(world)])
    return [weight.detach() for weight in one.parameters()]


def ways(rank: int) -> dict[str, Callable[[], nn.Module]]:
    def sharded() -> nn.Module:
        whole = model()
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        for layer in whole.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(whole, mesh=mesh)
        return whole

    return {
        "DDP": lambda: DistributedDataParallel(model()),
        "DDP with unused": lambda: DistributedDataParallel(model(), find_unused_parameters=True),
        "FSDP2": sharded,
        "DDP in parts": lambda: DistributedDataParallel(model()),
        "FSDP2 in parts": sharded,
    }


def main(rank: int, world: int, store: str) -> None:
    dist.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=world, timeout=timedelta(seconds=120)
    )
    expected = alone()
    for name, make in ways(rank).items():
        wrapped = make()
        if name.endswith("in parts"):  # the same two graphs, one after the other
            train(wrapped, lambda step: [batch(step, 2 * rank + n, 1) for n in range(2)])
        else:
            train(wrapped, lambda step: [batch(step, rank, 2)])
        found = [w.full_tensor() if hasattr(w, "full_tensor") else w for w in wrapped.parameters()]
        for got, right in zip(found, expected, strict=True):
            torch.testing.assert_close(got.detach(), right, rtol=1e-9, atol=1e-9)
        if rank == 0:
            print(f"{name}: equal", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
