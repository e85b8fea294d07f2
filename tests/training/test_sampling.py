"""Batches: the same items in the same steps for any number of processes, none dropped, none repeated."""

from __future__ import annotations

from collections import Counter
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyorder.training.sampling import GlobalBatches, Shares


def shares(
    items: int, size: int, *, rank: int, world: int, parts: int = 1, shuffle: bool, start: int = 0, epoch: int = 0
) -> Shares:
    places = [(rank * parts + part, world * parts) for part in range(parts)]
    made = [GlobalBatches(items, batch_size=size, seed=3, shuffle=shuffle, rank=r, world=w) for r, w in places]
    return Shares(made, training=shuffle, start=start, epoch=epoch)


@given(st.integers(1, 40), st.integers(1, 12), st.integers(1, 5))
def test_evaluation_sees_every_item_once(items, size, world):
    size = max(size, world)
    ranks = [shares(items, size, rank=rank, world=world, shuffle=False) for rank in range(world)]
    seen = [item for rank in ranks for batch in rank for item in batch]
    assert Counter(seen) == Counter(range(items))


@given(st.data())
def test_a_step_has_the_same_items_for_any_number_of_processes_and_parts(data):
    world, parts = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 3))
    items = data.draw(st.integers(world * parts, 40))
    size = data.draw(st.integers(world * parts, 20))
    epoch = data.draw(st.integers(0, 3))
    alone = shares(items, size, rank=0, world=1, shuffle=True, epoch=epoch)
    together = [shares(items, size, rank=rank, world=world, parts=parts, shuffle=True, epoch=epoch) for rank in range(world)]
    batches = [list(share) for share in together]
    assert {len(mine) for mine in batches} == {parts * len(alone)}
    for step, whole in enumerate(alone):
        found: list[int] = []
        for share, mine in zip(together, batches, strict=True):
            for number in range(step * parts, (step + 1) * parts):
                assert mine[number], "every process has something to do in every step"
                found += [] if number in share.idle else mine[number]
        assert sorted(found) == sorted(whole)


def test_epochs_are_shuffled_differently_and_repeatably():
    batches = shares(20, 5, rank=0, world=1, shuffle=True)
    first, again = list(batches), list(batches)
    batches.set_epoch(1)
    second = list(batches)
    assert first == again and first != second and sorted(chain(*first)) == sorted(chain(*second))


@pytest.mark.parametrize("start", range(5))
def test_an_epoch_begins_where_a_run_stopped_and_the_next_at_its_beginning(start):
    whole = shares(13, 3, rank=0, world=1, shuffle=True, epoch=2)
    rest = shares(13, 3, rank=0, world=1, shuffle=True, epoch=2, start=start)
    assert list(rest) == list(whole)[start:]
    assert list(rest) == list(whole)[start:], "asking twice changes nothing"
    for batches in (whole, rest):
        batches.set_epoch(3)
    assert list(rest) == list(whole)


def test_more_processes_than_items_are_refused_in_training_alone():
    with pytest.raises(ValueError, match="2 training items cannot be shared by 3"):
        GlobalBatches(2, batch_size=4, rank=0, world=3)
    with pytest.raises(ValueError, match="batch_size must be at least"):
        GlobalBatches(9, batch_size=2, rank=0, world=3)
    assert [len(list(shares(2, 4, rank=rank, world=3, shuffle=False))) for rank in range(3)].count(0) == 1
