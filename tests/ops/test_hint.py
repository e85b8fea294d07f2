"""Without Numba, a large input is told once how to be faster."""

import warnings

import pytest
import torch

from anyorder.ops import backends


def test_one_hint_for_large_inputs(monkeypatch):
    monkeypatch.setitem(backends.INSTALLED, "numba", False)
    monkeypatch.setattr(backends, "_hinted", [])
    large, small = torch.empty(backends.LARGE // 8, 8), torch.empty(10, 8)
    with backends.use_backend("auto"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert backends.backend_of(small) == "reference"
        with pytest.warns(UserWarning, match=r"262,144 entries .* pip install 'anyorder\[fast\]'"):
            backends.backend_of(large)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert backends.backend_of(large) == "reference"
