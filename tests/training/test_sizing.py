"""The estimate of an epoch, and the number of threads that follows from it."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
import torch

from anyorder.training import sizing


@pytest.fixture(autouse=True)
def two_threads():
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(threads)


def estimate(monkeypatch, seconds):
    """An epoch of ten steps that take so long on one thread and on two."""

    def loss(model, batch):
        time.sleep(seconds[torch.get_num_threads() - 1])
        return torch.zeros((), requires_grad=True)

    loaders = SimpleNamespace(train=lambda items: ([None], range(10)))
    monkeypatch.setattr(sizing, "Loaders", lambda run, rank, world: loaders)
    run = SimpleNamespace(model=SimpleNamespace(build=lambda shapes: None), task=SimpleNamespace(loss=loss))
    return sizing.seconds_per_epoch(run, SimpleNamespace(shapes=None, train=None))


def test_one_thread_where_several_wait_for_each_other(monkeypatch):
    took = estimate(monkeypatch, (0.0, 0.3))
    assert torch.get_num_threads() == 1
    assert took < 0.3 * 10  # that of one thread


def test_as_many_threads_as_given_elsewhere(monkeypatch):
    took = estimate(monkeypatch, (0.3, 0.0))
    assert torch.get_num_threads() == 2
    assert took < 0.3 * 10


def test_a_guest_gives_the_threads_back(monkeypatch):
    with sizing.keeping_threads():
        estimate(monkeypatch, (0.0, 0.3))
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
