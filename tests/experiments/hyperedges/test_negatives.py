from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyorder.experiments.hyperedges.negatives import NegativeSampler
from anyorder.experiments.hyperedges.tuples import KnownTuples, checked_tuples, offsets_of, row_codes


@st.composite
def typed_tuples(draw: st.DrawFn, *, max_order: int = 4, max_size: int = 5) -> tuple[tuple[int, ...], np.ndarray]:
    sizes = tuple(draw(st.lists(st.integers(1, max_size), min_size=2, max_size=max_order)))
    cells = list(itertools.product(*(range(size) for size in sizes)))
    chosen = draw(st.lists(st.sampled_from(cells), min_size=1, max_size=40))
    return sizes, np.array(chosen) + np.array(offsets_of(sizes))


def everything(sizes: tuple[int, ...]) -> np.ndarray:
    grid = np.array(list(itertools.product(*(range(size) for size in sizes))))
    return grid + np.array(offsets_of(sizes))


@given(typed_tuples())
@settings(max_examples=100, deadline=None)
def test_membership_is_that_of_a_python_set(case):
    sizes, tuples = case
    known = KnownTuples.of(tuples, sizes)
    expected = {tuple(row) for row in tuples.tolist()}
    candidates = everything(sizes)
    assert known.contains(candidates).tolist() == [tuple(row) in expected for row in candidates.tolist()]
    assert len(known) == len(expected)


@given(st.integers(2, 9), st.integers(1, 60), st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_membership_is_exact_where_codes_would_pass_64_bits(order, count, seed):
    sizes = (2**29,) * order  # 58 bits for two columns, 261 for nine
    generator = np.random.default_rng(seed)
    tuples = generator.integers(0, 2**29, size=(count, order)) + np.array(offsets_of(sizes))
    known = KnownTuples.of(tuples, sizes)
    near = tuples.copy()
    near[:, generator.integers(order)] ^= 1
    rows = {tuple(row) for row in tuples.tolist()}
    assert known.contains(tuples).all()
    assert known.contains(near).tolist() == [tuple(row) in rows for row in near.tolist()]
    assert len(np.unique(row_codes(tuples - np.array(offsets_of(sizes)), sizes))) == len(rows)


@given(typed_tuples(), st.integers(1, 4), st.floats(0, 1), st.integers(0, 2**32 - 1))
@settings(max_examples=200, deadline=None)
def test_negatives_are_unknown_and_honour_types(case, per_positive, one_position, seed):
    sizes, tuples = case
    known = KnownTuples.of(tuples, sizes)
    sampler = NegativeSampler(known, per_positive=per_positive, one_position=one_position)
    if len(known) == np.prod(sizes):
        with pytest.raises(ValueError, match="nearly fill"):
            sampler(tuples, np.random.default_rng(seed))
        return
    negatives = sampler(tuples, np.random.default_rng(seed))
    assert negatives.shape == (len(tuples) * per_positive, len(sizes))
    checked_tuples(negatives, sizes, "negatives")
    assert not {tuple(row) for row in negatives.tolist()} & {tuple(row) for row in tuples.tolist()}


def test_one_position_or_all_are_replaced_as_often_as_told():
    sizes = (1000, 1000, 1000)
    positives = everything((10, 10, 10))
    positives = positives - np.array(offsets_of((10, 10, 10))) + np.array(offsets_of(sizes))
    sampler = NegativeSampler(KnownTuples.of(positives, sizes), per_positive=20)
    negatives = sampler(positives, np.random.default_rng(0)).reshape(len(positives), 20, 3)
    changed = (negatives != positives[:, None]).sum(-1)
    shares = np.bincount(changed.reshape(-1), minlength=4) / changed.size
    assert shares[0] == 0
    assert shares[1] == pytest.approx(0.9, abs=0.01)
    assert shares[3] == pytest.approx(0.1, abs=0.01)
    position = (negatives != positives[:, None])[changed == 1].mean(0)
    assert position == pytest.approx([1 / 3] * 3, abs=0.02)


def test_draws_are_uniform_over_the_nodes_that_make_no_positive():
    sizes = (2, 8)
    known = np.array([[0, 2], [0, 3], [0, 4], [1, 2]])
    sampler = NegativeSampler(KnownTuples.of(known, sizes), per_positive=20_000, one_position=1.0)
    negatives = sampler(known[:1], np.random.default_rng(0))
    second = negatives[negatives[:, 0] == 0][:, 1]
    assert set(second) == {5, 6, 7, 8, 9}
    shares = np.bincount(second, minlength=10)[5:] / len(second)
    assert shares == pytest.approx([0.2] * 5, abs=0.02)


def test_a_row_whose_completions_are_all_known_is_replaced_everywhere():
    sizes = (1, 3, 4)
    known = np.array([[0, 1, 4 + node] for node in range(4)])
    sampler = NegativeSampler(KnownTuples.of(known, sizes), one_position=1.0, per_positive=50)
    negatives = sampler(known, np.random.default_rng(0))
    assert not KnownTuples.of(known, sizes).contains(negatives).any()
    assert set(negatives[:, 1]) == {2, 3}


def test_the_same_seed_gives_the_same_negatives():
    known = everything((4, 5, 6))[::3]
    sampler = NegativeSampler(KnownTuples.of(known, (4, 5, 6)))
    first, again, other = (sampler(known, np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_saturated_rows_are_those_known_with_every_node():
    sizes = (2, 2, 3)
    full = np.array([[1, 3, 4 + node] for node in range(3)])
    known = KnownTuples.of(np.concatenate([full, [[0, 2, 4], [0, 2, 5]]]), sizes)
    assert known.saturated(2).tuples.tolist() == [[1, 3]]
    assert len(known.saturated(0)) == 0


@pytest.mark.parametrize(
    ("tuples", "error", "message"),
    [
        (np.array([[0, 1, 2]]), ValueError, "one column per node type"),
        (np.array([[0.0, 3.0]]), TypeError, "integer node ids"),
        (np.array([[0, 2], [2, 3]]), ValueError, "row 1 holds node 2 in column 0, whose type has the ids 0..1"),
        (np.array([[1, 4]]), ValueError, r"row 0 \[1, 4\] is not among the known tuples"),
    ],
)
def test_bad_positives_are_refused(tuples, error, message):
    sampler = NegativeSampler(KnownTuples.of(np.array([[0, 2]]), (2, 3)))
    with pytest.raises(error, match=message):
        sampler(tuples, np.random.default_rng(0))


def test_bad_settings_are_refused():
    known = KnownTuples.of(np.array([[0, 2]]), (2, 3))
    with pytest.raises(ValueError, match="probability"):
        NegativeSampler(known, one_position=1.5)
    with pytest.raises(ValueError, match="at least 1"):
        NegativeSampler(known, tries=0)
