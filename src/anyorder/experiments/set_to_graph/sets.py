"""Sets of points with a target for every ordered pair, and ragged batches of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from anyorder.layouts.transfer import Transferable
from anyorder.training.shapes import Shapes


@dataclass(frozen=True)
class SetShapes(Shapes):
    """Features of a point, the size of the largest set, and the constants by which points are standardised, if they are."""

    channels: int
    max_points: int | None = None
    mean: tuple[float, ...] | None = None
    deviation: tuple[float, ...] | None = None


@dataclass(frozen=True, eq=False)
class SetSample:
    """One set: points (n, channels), optionally which ordered pairs (n, n) are related, and a label of the whole set.

    >>> SetSample.from_edges(np.zeros((3, 2)), np.array([[0, 2]])).edges
    array([[0, 2]])
    """

    points: npt.NDArray[np.float32]
    adjacency: npt.NDArray[np.bool_] | None = None
    label: int | None = None

    def __post_init__(self) -> None:
        if self.points.ndim != 2 or len(self.points) == 0:
            raise ValueError(f"points must have shape (n, channels) with n > 0, got {self.points.shape}")
        if self.adjacency is not None and self.adjacency.shape != (len(self.points),) * 2:
            raise ValueError(f"adjacency of {len(self.points)} points must be square, got {self.adjacency.shape}")

    @classmethod
    def from_edges(cls, points: npt.ArrayLike, edges: npt.ArrayLike, label: int | None = None) -> SetSample:
        """A set whose undirected edges (m, 2) become a symmetric adjacency."""
        points = np.asarray(points, dtype=np.float32)
        first, second = np.asarray(edges, dtype=np.int64).reshape(-1, 2).T
        adjacency = np.zeros((len(points), len(points)), dtype=np.bool_)
        adjacency[first, second] = adjacency[second, first] = True
        return cls(points, adjacency, label)

    @classmethod
    def from_partition(cls, points: npt.ArrayLike, cluster: npt.ArrayLike, label: int | None = None) -> SetSample:
        """A set whose pairs are related when they lie in the same cluster, each point with itself too."""
        cluster = np.asarray(cluster)
        return cls(np.asarray(points, dtype=np.float32), cluster[:, None] == cluster[None, :], label)

    @property
    def edges(self) -> npt.NDArray[np.int64]:
        """The related pairs i < j, in row-major order, as (m, 2)."""
        if self.adjacency is None:
            raise ValueError("this set has no adjacency, so its edges are unknown")
        return np.argwhere(np.triu(self.adjacency, 1))


@dataclass(frozen=True, eq=False)
class SetBatch(Transferable):
    """Sets laid end to end without padding; pairs are the n_i * n_i ordered pairs of each set, row by row.

    >>> batch = SetBatch(torch.zeros(3, 2), torch.tensor([1, 2]))
    >>> batch.pair_index.tolist()
    [[0, 1, 1, 2, 2], [0, 1, 2, 1, 2]]
    """

    points: Tensor
    sizes: Tensor
    targets: Tensor | None = None
    labels: Tensor | None = None

    def __post_init__(self) -> None:
        if self.points.ndim != 2:
            raise ValueError(f"points must have shape (total nodes, channels), got {tuple(self.points.shape)}")
        if self.sizes.ndim != 1 or self.sizes.dtype != torch.int64:
            raise ValueError(f"sizes must be int64 of shape (batch,), got {self.sizes.dtype} {tuple(self.sizes.shape)}")
        if self.sizes.device.type == "cpu":  # elsewhere a check would wait for the device; batches are built here
            self._check_counts()

    def _check_counts(self) -> None:
        if self.num_sets == 0 or int(self.sizes.min()) < 1:
            raise ValueError(f"a batch needs at least one set and every set a point, got sizes {self.sizes.tolist()}")
        if int(self.sizes.sum()) != len(self.points):
            raise ValueError(f"sizes add up to {int(self.sizes.sum())}, but there are {len(self.points)} points")
        if self.targets is not None and self.targets.shape != (self.num_pairs,):
            raise ValueError(f"targets must be flat over {self.num_pairs} pairs, got {tuple(self.targets.shape)}")
        if self.labels is not None and len(self.labels) != self.num_sets:
            raise ValueError(f"labels must be one per set: expected {self.num_sets}, got {len(self.labels)}")

    @property
    def num_sets(self) -> int:
        """How many sets there are."""
        return len(self.sizes)

    @cached_property
    def num_pairs(self) -> int:
        """The sum of n_i squared."""
        return int(self.sizes.square().sum())

    @cached_property
    def max_size(self) -> int:
        """The size of the largest set."""
        return int(self.sizes.max())

    @cached_property
    def same_size(self) -> bool:
        """Whether all sets have equally many points."""
        return self.max_size * self.num_sets == len(self.points)

    @cached_property
    def offsets(self) -> Tensor:
        """The first node of each set."""
        return self.sizes.cumsum(0) - self.sizes

    @cached_property
    def node_set(self) -> Tensor:
        """The set of each node."""
        index = torch.arange(self.num_sets, device=self.sizes.device)
        return index.repeat_interleave(self.sizes, output_size=len(self.points))

    @cached_property
    def pair_set(self) -> Tensor:
        """The set of each pair."""
        index = torch.arange(self.num_sets, device=self.sizes.device)
        return index.repeat_interleave(self.sizes.square(), output_size=self.num_pairs)

    @cached_property
    def pair_index(self) -> Tensor:
        """The nodes (2, pairs) of each ordered pair (i, j)."""
        row = self._nodes.repeat_interleave(self.sizes[self.node_set], output_size=self.num_pairs)
        position = torch.arange(self.num_pairs, device=self.sizes.device) - self.row_start[row]
        return torch.stack((row, self.offsets[self.pair_set] + position))

    @cached_property
    def reverse(self) -> Tensor:
        """The position of the pair (j, i) for each pair (i, j)."""
        row, column = self.pair_index
        transposed: Tensor = self.row_start[column] + row - self.offsets[self.pair_set]
        return transposed

    @cached_property
    def row_start(self) -> Tensor:
        """The position of the first pair of each node's row."""
        node_sizes = self.sizes[self.node_set]
        return node_sizes.cumsum(0) - node_sizes

    @cached_property
    def diagonal(self) -> Tensor:
        """The position of the pair (i, i) of each node."""
        return self.row_start + self._nodes - self.offsets[self.node_set]

    @cached_property
    def is_diagonal(self) -> Tensor:
        """Whether each pair joins a node with itself."""
        return self.pair_index[0] == self.pair_index[1]

    @cached_property
    def mask(self) -> Tensor:
        """Which places (batch, max_size) of the padded view hold a node."""
        return torch.arange(self.max_size, device=self.sizes.device) < self.sizes[:, None]

    def pad(self, values: Tensor) -> Tensor:
        """Node values (total nodes, channels) as (batch, max_size, channels), zero where there is no node."""
        if self.same_size:
            return values.reshape(self.num_sets, self.max_size, -1)
        padded = values.new_zeros(self.num_sets * self.max_size, values.shape[1])
        return padded.index_copy(0, self._places, values).view(self.num_sets, self.max_size, -1)

    def unpad(self, padded: Tensor) -> Tensor:
        """The inverse of :meth:`pad`: padded values (batch, max_size, channels) as (total nodes, channels)."""
        flat = padded.flatten(0, 1)
        return flat if self.same_size else flat[self._places]

    def flatten_pairs(self, padded: Tensor) -> Tensor:
        """Values (batch, m, m) of a padded grid with m >= max_size as a flat vector over the pairs."""
        side = padded.shape[1]
        if self.same_size and side == self.max_size:
            return padded.flatten()
        row, column = self.pair_index - self.offsets[self.pair_set]
        return padded.flatten()[(self.pair_set * side + row) * side + column]

    @cached_property
    def _nodes(self) -> Tensor:
        return torch.arange(self.points.shape[0], device=self.sizes.device)

    @cached_property
    def _places(self) -> Tensor:
        return self.node_set * self.max_size + self._nodes - self.offsets[self.node_set]

    def set_sum(self, values: Tensor) -> Tensor:
        """Node values (total nodes, channels) summed over each set: (batch, channels)."""
        return values.new_zeros(self.num_sets, values.shape[1]).index_add(0, self.node_set, values)

    def set_mean(self, values: Tensor) -> Tensor:
        """Node values (total nodes, channels) averaged over each set: (batch, channels)."""
        return self.set_sum(values) / self.sizes[:, None].to(values.dtype)

    def pair_sum(self, values: Tensor) -> Tensor:
        """Flat pair values summed over the pairs of each set: (batch,)."""
        return values.new_zeros(self.num_sets).index_add(0, self.pair_set, values)


def collate_sets(samples: Sequence[SetSample]) -> SetBatch:
    """Lay sets end to end as one batch; targets and labels are there when every set has them.

    >>> collate_sets([SetSample.from_partition(np.zeros((2, 1)), [0, 1]), SetSample.from_partition([[1]], [0])]).targets
    tensor([1., 0., 0., 1., 1.])
    """
    if not samples:
        raise ValueError("a batch needs at least one set, got none")
    channels = {sample.points.shape[1] for sample in samples}
    if len(channels) > 1:
        raise ValueError(f"all sets of a batch must have equally many channels, got {sorted(channels)}")
    points = torch.from_numpy(np.concatenate([sample.points for sample in samples]))
    sizes = torch.tensor([len(sample.points) for sample in samples])
    adjacency = [sample.adjacency for sample in samples if sample.adjacency is not None]
    labels = [sample.label for sample in samples if sample.label is not None]
    if len(adjacency) not in (0, len(samples)) or len(labels) not in (0, len(samples)):
        raise ValueError(
            f"either all {len(samples)} sets of a batch have an adjacency (and a label) or none has: "
            f"{len(adjacency)} have an adjacency, {len(labels)} a label"
        )
    flat = np.concatenate([matrix.ravel() for matrix in adjacency]) if adjacency else None
    return SetBatch(
        points=points,
        sizes=sizes,
        targets=None if flat is None else torch.from_numpy(flat).to(points.dtype),
        labels=torch.tensor(labels) if labels else None,
    )
