"""k-uniform hyperedges between typed nodes: the value, its splits, and the reader of the released files."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from anyorder.arrays import read_arrays
from anyorder.errors import InputError, reading
from anyorder.experiments.hyperedges.tuples import Ints, KnownTuples, checked_tuples, offsets_of

Part = Literal["train", "validation", "test"]
MOST_NODES = 2**31

TYPE_NAMES: dict[str, tuple[str, ...]] = {
    "GPS": ("user", "location", "activity"),
    "MovieLens": ("user", "movie", "tag"),
    "drug": ("user", "drug", "reaction"),
    "wordnet": ("head", "relation", "tail"),
}


def _no_tuples() -> Ints:
    return np.zeros((0, 0), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class TypedHyperedges:
    """Hyperedges with one node of every type: column j of a tuple holds a node of type j, ids offset per type.

    ``weights`` says how much each training tuple counts (default: 1). Arrays are read-only.

    >>> data = TypedHyperedges(sizes=(2, 3), train=np.array([[0, 2], [1, 4]]), test=np.array([[0, 2], [0, 3]]))
    >>> data.num_nodes, data.order, data.offsets
    (5, 2, (0, 2))
    >>> data.test[data.unseen("test")].tolist()
    [[0, 3]]
    """

    sizes: tuple[int, ...]
    train: Ints
    test: Ints
    validation: Ints = field(default_factory=_no_tuples)
    names: tuple[str, ...] = ()
    weights: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        sizes = tuple(int(size) for size in self.sizes)
        if len(sizes) < 2 or min(sizes) < 1:
            raise ValueError(f"hyperedges need at least two node types with at least one node each, got sizes {sizes}")
        names = tuple(self.names) or tuple(f"type{position}" for position in range(len(sizes)))
        if len(set(names)) != len(sizes):
            raise ValueError(f"expected {len(sizes)} different type names, got {names}")
        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "names", names)
        for part in ("train", "validation", "test"):
            rows = np.asarray(getattr(self, part))
            rows = np.zeros((0, len(sizes)), dtype=np.int64) if rows.size == 0 else rows
            object.__setattr__(self, part, _read_only(checked_tuples(rows, sizes, part)))
        weights = np.ones(len(self.train)) if self.weights is None else np.asarray(self.weights, dtype=np.float64)
        if weights.shape != (len(self.train),) or not np.isfinite(weights).all() or (weights <= 0).any():
            raise ValueError(
                f"weights must be {len(self.train)} positive numbers, one per training tuple, "
                f"got shape {weights.shape} with minimum {weights.min(initial=np.inf)}"
            )
        object.__setattr__(self, "weights", _read_only(weights))

    @property
    def order(self) -> int:
        """Nodes in a hyperedge, k."""
        return len(self.sizes)

    @property
    def num_nodes(self) -> int:
        return sum(self.sizes)

    @property
    def offsets(self) -> tuple[int, ...]:
        """The first global id of every type."""
        return offsets_of(self.sizes)

    @property
    def train_weights(self) -> NDArray[np.float64]:
        """How much each training tuple counts."""
        assert self.weights is not None
        return self.weights

    def known(self, part: Part) -> KnownTuples:
        """The positives that no negative of this part may be: train knows itself, test knows every part."""
        parts: dict[str, tuple[Ints, ...]] = {
            "train": (self.train,),
            "validation": (self.train, self.validation),
            "test": (self.train, self.validation, self.test),
        }
        if part not in parts:
            raise ValueError(f"part must be one of {tuple(parts)}, got {part!r}")
        return KnownTuples.of(np.concatenate(parts[part]), self.sizes)

    def unseen(self, part: Literal["validation", "test"]) -> NDArray[np.bool_]:
        """Mask of the tuples of a part that training (for test: or validation) does not hold as well."""
        earlier = self.known("train" if part == "validation" else "validation")
        return ~earlier.contains(self.validation if part == "validation" else self.test)

    def with_validation(self, fraction: float = 0.1, *, seed: int = 0) -> TypedHyperedges:
        """Move a random ``fraction`` of the training rows to a validation part.

        Rows, not distinct tuples, are split, so that validation repeats training tuples as often as a test set that
        was split by rows does.
        """
        if len(self.validation):
            raise ValueError(f"there is a validation part of {len(self.validation)} tuples already")
        count = round(fraction * len(self.train))
        if not 0 < count < len(self.train):
            raise ValueError(f"a fraction {fraction} of {len(self.train)} training tuples leaves a part empty")
        shuffled = np.random.default_rng(seed).permutation(len(self.train))
        held, kept = np.sort(shuffled[:count]), np.sort(shuffled[count:])
        return replace(self, train=self.train[kept], validation=self.train[held], weights=self.train_weights[kept])


def _read_only(array: NDArray[np.generic]) -> NDArray[np.generic]:
    frozen = np.array(array, order="C", copy=True)
    frozen.setflags(write=False)
    return frozen


def _read_part(path: Path, key: str) -> tuple[Ints, tuple[int, ...]]:
    """Tuples with ids local to each type, and the sizes of the types, of one ``.npz`` file."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: a hyperedge folder holds train_data.npz and test_data.npz")
    arrays = read_arrays(path, needed=(key, "nums_type"), only=True)
    rows, sizes = arrays[key], arrays["nums_type"]
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes > MOST_NODES).any():
        raise InputError(f"{path}: nums_type must be whole numbers of at most {MOST_NODES:,}, one per type, got {sizes}")
    if rows.ndim != 2 or rows.dtype.kind not in "iuf":
        raise InputError(f"{path}: {key} must be whole numbers with a row per tuple, got {rows.dtype} {rows.shape}")
    with np.errstate(invalid="ignore"):
        whole = rows.astype(np.int64)
    if not np.array_equal(whole, rows):
        raise InputError(f"{path}: {key} must hold whole numbers, got dtype {rows.dtype} with fractions")
    return whole, tuple(int(size) for size in sizes)


def read_hyperedges(folder: str | Path) -> TypedHyperedges:
    """Read ``train_data.npz`` and ``test_data.npz``: rows of ids local to each type, and ``nums_type``, the sizes."""
    folder = Path(folder)
    train, sizes = _read_part(folder / "train_data.npz", "train_data")
    test, sizes_of_test = _read_part(folder / "test_data.npz", "test_data")
    if sizes != sizes_of_test:
        raise InputError(f"{folder}: nums_type is {sizes} in training and {sizes_of_test} in test, expected the same")
    if train.ndim != 2 or test.ndim != 2 or {train.shape[1], test.shape[1]} != {len(sizes)}:
        raise InputError(f"{folder}: expected {len(sizes)} columns, got shapes {train.shape} and {test.shape}")
    shift = np.asarray(offsets_of(sizes), dtype=np.int64)
    names = TYPE_NAMES.get(folder.name, ())
    with reading(folder), np.errstate(over="ignore"):
        return TypedHyperedges(sizes=sizes, train=train + shift, test=test + shift, names=names)
