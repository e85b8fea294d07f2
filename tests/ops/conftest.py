"""These tests are about the operators: they take the version that a user gets once its loops are there."""

from collections.abc import Iterator

import pytest

from anyorder.ops.backends import use_backend, use_compiling


@pytest.fixture(autouse=True)
def chosen_backend() -> Iterator[None]:
    with use_backend("auto"), use_compiling("wait"):
        yield
