"""Ragged batches of sets against their plain definition."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

from anyorder.experiments.set_to_graph.sets import SetBatch, SetSample, collate_sets

SIZES = [pytest.param((3, 1, 4), id="ragged"), pytest.param((3, 3), id="same-size"), pytest.param((1,), id="one-point")]


def make_batch(sizes: tuple[int, ...], channels: int = 2) -> SetBatch:
    generator = torch.Generator().manual_seed(0)
    return SetBatch(torch.rand(sum(sizes), channels, generator=generator), torch.tensor(sizes))


@pytest.mark.parametrize("sizes", SIZES)
class TestPairs:
    def test_pairs_are_row_major_in_each_set(self, sizes: tuple[int, ...]) -> None:
        starts = np.cumsum((0, *sizes))
        nodes = [range(start, start + size) for start, size in zip(starts, sizes, strict=False)]
        expected = [(int(i), int(j)) for part in nodes for i, j in product(part, part)]
        assert [*map(tuple, make_batch(sizes).pair_index.T.tolist())] == expected

    def test_reverse_and_diagonal_point_at_the_right_pairs(self, sizes: tuple[int, ...]) -> None:
        batch = make_batch(sizes)
        row, column = batch.pair_index
        assert torch.equal(batch.pair_index[:, batch.reverse], torch.stack((column, row)))
        assert torch.equal(row[batch.diagonal], torch.arange(sum(sizes)))
        assert torch.equal(column[batch.diagonal], torch.arange(sum(sizes)))
        assert batch.is_diagonal.nonzero().squeeze(1).tolist() == batch.diagonal.tolist()

    def test_pair_sum_adds_each_set(self, sizes: tuple[int, ...]) -> None:
        batch = make_batch(sizes)
        values = torch.rand(batch.num_pairs, dtype=torch.float64)
        expected = torch.stack([part.sum() for part in torch.split(values, [size**2 for size in sizes])])
        torch.testing.assert_close(batch.pair_sum(values), expected)

    def test_flatten_pairs_reads_a_padded_grid(self, sizes: tuple[int, ...]) -> None:
        batch = make_batch(sizes)
        for side in (max(sizes), max(sizes) + 2):
            grid = torch.rand(len(sizes), side, side)
            expected = torch.cat([part[:size, :size].flatten() for part, size in zip(grid, sizes, strict=True)])
            assert torch.equal(batch.flatten_pairs(grid), expected)


@pytest.mark.parametrize("sizes", SIZES)
class TestNodes:
    def test_padding_is_zero_and_comes_off_again(self, sizes: tuple[int, ...]) -> None:
        batch = make_batch(sizes)
        padded = batch.pad(batch.points)
        assert padded.shape == (len(sizes), max(sizes), 2)
        assert torch.equal(padded[batch.mask], batch.points)
        assert not padded[~batch.mask].any()
        assert torch.equal(batch.unpad(padded), batch.points)

    def test_sum_and_mean_of_each_set(self, sizes: tuple[int, ...]) -> None:
        batch = make_batch(sizes)
        parts = torch.split(batch.points, list(sizes))
        torch.testing.assert_close(batch.set_sum(batch.points), torch.stack([part.sum(0) for part in parts]))
        torch.testing.assert_close(batch.set_mean(batch.points), torch.stack([part.mean(0) for part in parts]))

    def test_offsets_and_node_set(self, sizes: tuple[int, ...]) -> None:
        batch = make_batch(sizes)
        assert batch.offsets.tolist() == np.cumsum((0, *sizes))[:-1].tolist()
        assert batch.node_set.tolist() == [index for index, size in enumerate(sizes) for _ in range(size)]


class TestCollate:
    def test_targets_are_the_adjacencies_row_by_row(self) -> None:
        first = SetSample.from_edges([[0, 0], [1, 0], [0, 1]], [[2, 0]], label=5)
        second = SetSample.from_partition([[1, 1]], [7], label=4)
        batch = collate_sets([first, second])
        assert batch.sizes.tolist() == [3, 1]
        assert batch.targets is not None and batch.labels is not None
        assert batch.targets.tolist() == [0, 0, 1, 0, 0, 0, 1, 0, 0, 1]
        assert batch.labels.tolist() == [5, 4]
        assert batch.points.dtype == batch.targets.dtype == torch.float32

    def test_a_batch_without_targets_has_none(self) -> None:
        batch = collate_sets([SetSample(np.zeros((2, 3), dtype=np.float32))])
        assert batch.targets is None
        assert batch.labels is None

    def test_mixed_sets_are_refused(self) -> None:
        plain, labelled = SetSample(np.zeros((2, 1), np.float32)), SetSample.from_partition(np.zeros((2, 1)), [0, 0])
        with pytest.raises(ValueError, match="1 have an adjacency"):
            collate_sets([plain, labelled])
        with pytest.raises(ValueError, match=r"equally many channels, got \[1, 2\]"):
            collate_sets([plain, SetSample(np.zeros((2, 2), np.float32))])
        with pytest.raises(ValueError, match="at least one set"):
            collate_sets([])


class TestErrors:
    @pytest.mark.parametrize(
        ("sizes", "targets", "message"),
        [
            ([2, 2], None, "sizes add up to 4, but there are 3 points"),
            ([3, 0], None, "every set a point"),
            ([3], torch.zeros(8), "flat over 9 pairs"),
            ([3], torch.zeros(3, 3), "flat over 9 pairs"),
        ],
    )
    def test_counts_must_agree(self, sizes: list[int], targets: torch.Tensor | None, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            SetBatch(torch.zeros(3, 2), torch.tensor(sizes), targets)

    def test_shapes_must_be_right(self) -> None:
        with pytest.raises(ValueError, match="total nodes, channels"):
            SetBatch(torch.zeros(3), torch.tensor([3]))
        with pytest.raises(ValueError, match="must be int64"):
            SetBatch(torch.zeros(3, 1), torch.tensor([3.0]))
        with pytest.raises(ValueError, match="n > 0"):
            SetSample(np.zeros((0, 2), np.float32))
        with pytest.raises(ValueError, match="must be square"):
            SetSample(np.zeros((2, 2), np.float32), np.zeros((3, 3), np.bool_))


def test_moving_keeps_everything() -> None:
    batch = collate_sets([SetSample.from_partition(np.ones((2, 1)), [0, 1], label=0)])
    moved = batch.to("meta")
    assert {value.device.type for value in (moved.points, moved.sizes, moved.targets, moved.labels)} == {"meta"}  # type: ignore[union-attr]
    same = batch.to("cpu")
    assert same.targets is not None and torch.equal(same.targets, torch.tensor([1.0, 0, 0, 1]))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="page-locked memory needs a GPU")
def test_pinned_memory() -> None:
    assert collate_sets([SetSample(np.ones((2, 1), np.float32))]).pin_memory().points.is_pinned()
