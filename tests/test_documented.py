"""Every argument of every public class is documented."""

from __future__ import annotations

import inspect
import re

import pytest

import anyorder
import anyorder.pyg

PUBLIC = {
    name: found
    for home in (anyorder, anyorder.pyg)
    for name in home.__all__
    if inspect.isclass(found := getattr(home, name))
}


def documented(cls: type) -> set[str]:
    """The names before the colons of the sections Args and Attributes."""
    text = inspect.getdoc(cls) or ""
    names: set[str] = set()
    for section in re.findall(r"^(?:Args|Attributes):\n((?:[ ]{4}.*\n?|\n)*)", text, re.MULTILINE):
        for line in re.findall(r"^ {4}(\S[^:]*):", section, re.MULTILINE):
            names.update(part.strip() for part in line.split(","))
    return names


def arguments(cls: type) -> list[str]:
    if inspect.isabstract(cls) or not cls.__init__.__module__.startswith(("anyorder", __name__)):
        return []
    return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_arguments_are_documented(name):
    cls = PUBLIC[name]
    owner = next(base for base in cls.__mro__ if "__init__" in vars(base))  # a class that takes what its base takes
    missing = [argument for argument in arguments(cls) if argument not in documented(cls) | documented(owner)]
    assert not missing, f"{name}: {missing}"


def test_the_walk_finds_what_is_missing():
    class Bare:
        """One sentence.

        Args:
            a, b: two of three.
        """

        def __init__(self, a: int, b: int, c: int) -> None: ...

    assert [each for each in arguments(Bare) if each not in documented(Bare)] == ["c"]
