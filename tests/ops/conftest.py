"""These tests are about the operators: they take the version that a user gets."""

from collections.abc import Iterator

import pytest

from anyorder.ops.backends import use_backend


@pytest.fixture(autouse=True)
def chosen_backend() -> Iterator[None]:
    with use_backend("auto"):
        yield
