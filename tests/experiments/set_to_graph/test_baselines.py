"""Laws that every set-to-graph baseline meets: size, equivariance, independence of its batch, gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from anyorder.experiments.set_to_graph.baselines.flat_mlp import FlatMLPConfig
from anyorder.experiments.set_to_graph.baselines.pairs import PairModel, PairModelConfig
from anyorder.experiments.set_to_graph.baselines.rows import DELAUNAY_ROWS, JETS_ROWS
from anyorder.experiments.set_to_graph.sets import SetBatch

PUBLISHED = {
    "delaunay": {"S2G": 5.92e6, "S2G+": 6.40e6, "SIAM": 4.75e6, "SIAM-3": 5.92e6, "MLP": 6.3e6}
    | {"GNN0": 6.0e6, "GNN5": 6.0e6, "GNN10": 6.0e6},
    "jets": {"S2G": 457e3, "S2G+": 461e3, "SIAM": 453e3, "SIAM-3": 455e3, "MLP": 456e3, "GNN": 475e3},
}
TABLES: Mapping[str, Mapping[str, PairModelConfig]] = {"delaunay": DELAUNAY_ROWS, "jets": JETS_ROWS}
ROWS = [pytest.param(table, row, id=f"{table}-{row}") for table, rows in TABLES.items() for row in rows]
EQUIVARIANT = [case for case in ROWS if case.values[1] != "MLP"]
SIZES = (7, 1, 2, 7, 12)


def narrow(table: str, row: str) -> PairModel:
    """The row with its layers at a tenth of their width, in float64, with batch statistics that are not trivial."""
    config: Any = TABLES[table][row]
    changes: dict[str, Any] = {"widths": tuple(max(width // 10, 3) for width in config.widths)}
    if hasattr(config, "head"):
        changes["head"] = tuple(width // 10 for width in config.head)
    torch.manual_seed(0)
    model: PairModel = replace(config, **changes).build().double()
    model.train()
    with torch.no_grad():
        model(make_batch(SIZES, config.channels_in))  # moves the running statistics of batch norm
    return model.eval()


def make_batch(sizes: tuple[int, ...], channels: int, seed: int = 0) -> SetBatch:
    generator = torch.Generator().manual_seed(seed)
    points = torch.randn(sum(sizes), channels, generator=generator, dtype=torch.float64)
    pairs = sum(size**2 for size in sizes)
    targets = (torch.rand(pairs, generator=generator) < 0.3).double()
    return SetBatch(points, torch.tensor(sizes), targets)


def channels_of(table: str) -> int:
    return {"delaunay": 2, "jets": 10}[table]


def squares(flat: Tensor, sizes: tuple[int, ...]) -> list[Tensor]:
    parts = torch.split(flat, [size**2 for size in sizes])
    return [part.view(size, size) for part, size in zip(parts, sizes, strict=True)]


@torch.no_grad()
def permutation_error(model: PairModel, batch: SetBatch, sizes: tuple[int, ...]) -> float:
    """How far the logits of permuted sets are from the permuted logits, as a part of their spread."""
    generator = torch.Generator().manual_seed(1)
    orders = [torch.randperm(size, generator=generator) for size in sizes]
    parts = torch.split(batch.points, list(sizes))
    mixed = torch.cat([part[order] for part, order in zip(parts, orders, strict=True)])
    before = squares(model(batch), sizes)
    after = squares(model(SetBatch(mixed, batch.sizes)), sizes)
    gaps = [(new - old[order][:, order]).abs().max() for old, new, order in zip(before, after, orders, strict=True)]
    return float(torch.stack(gaps).max() / torch.cat([old.flatten() for old in before]).std())


@pytest.mark.parametrize(("table", "row"), ROWS)
def test_number_of_parameters_is_the_published_one(table: str, row: str) -> None:
    with torch.device("meta"):
        model = TABLES[table][row].build()
    number = sum(parameter.numel() for parameter in model.parameters())
    assert number == pytest.approx(PUBLISHED[table][row], rel=0.02)


def test_every_published_row_is_there() -> None:
    assert {table: set(rows) for table, rows in TABLES.items()} == {name: set(rows) for name, rows in PUBLISHED.items()}


@pytest.mark.parametrize(("table", "row"), EQUIVARIANT)
@pytest.mark.parametrize("sizes", [SIZES, (6, 6, 6)], ids=["ragged", "same-size"])
def test_is_equivariant(table: str, row: str, sizes: tuple[int, ...]) -> None:
    model, batch = narrow(table, row), make_batch(sizes, channels_of(table))
    assert permutation_error(model, batch, sizes) < 1e-8


@pytest.mark.parametrize("table", TABLES)
def test_the_mlp_is_not_equivariant(table: str) -> None:
    assert permutation_error(narrow(table, "MLP"), make_batch(SIZES, channels_of(table)), SIZES) > 1e-3


@pytest.mark.parametrize(("table", "row"), ROWS)
def test_a_set_does_not_see_its_batch_neighbours_or_padding(table: str, row: str) -> None:
    model, batch = narrow(table, row), make_batch(SIZES, channels_of(table))
    alone = [model(SetBatch(part, torch.tensor([len(part)]))) for part in torch.split(batch.points, list(SIZES))]
    torch.testing.assert_close(model(batch), torch.cat(alone), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("table", "row"), ROWS)
@pytest.mark.parametrize("sizes", [SIZES, (1,), (1, 1, 2)], ids=["ragged", "one-point", "tiny"])
def test_gradients_are_finite_even_for_points_at_zero(table: str, row: str, sizes: tuple[int, ...]) -> None:
    model, batch = narrow(table, row), make_batch(sizes, channels_of(table))
    batch.points[0] = 0
    logits = model(batch)
    assert logits.shape == (sum(size**2 for size in sizes),)
    logits.square().sum().backward()
    gradients = [parameter.grad for parameter in model.parameters()]
    assert all(gradient is not None and gradient.isfinite().all() for gradient in gradients)


@pytest.mark.parametrize(("table", "row"), ROWS)
def test_float32_agrees_with_float64(table: str, row: str) -> None:
    model, batch = narrow(table, row), make_batch(SIZES, channels_of(table))
    exact = model(batch)
    rough = model.float()(SetBatch(batch.points.float(), batch.sizes))
    assert rough.dtype == torch.float32
    torch.testing.assert_close(rough.double(), exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("sizes", [SIZES, (5, 5)], ids=["ragged", "same-size"])
def test_s2g_is_the_same_in_training_and_evaluation(table: str, sizes: tuple[int, ...]) -> None:
    model, batch = narrow(table, "S2G+"), make_batch(sizes, channels_of(table))
    evaluated = model(batch)
    assert torch.equal(model.train()(batch), evaluated)


def test_the_mlp_refuses_sets_that_are_too_large() -> None:
    model = FlatMLPConfig(channels_in=1, max_points=4, widths=(3,)).build()
    with pytest.raises(ValueError, match="at most 4 points, got one of 5"):
        model(SetBatch(torch.zeros(5, 1), torch.tensor([5])))
