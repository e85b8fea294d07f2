"""Every argument of every public class and function is documented, tensors with their shape, and an example runs."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest
from torch import Tensor

import anyorder
import anyorder.algebra
import anyorder.convert
import anyorder.errors
import anyorder.estimators
import anyorder.layers
import anyorder.layouts
import anyorder.models
import anyorder.pyg
import anyorder.testing

HOMES = (
    anyorder,
    anyorder.algebra,
    anyorder.convert,
    anyorder.errors,
    anyorder.estimators,
    anyorder.layers,
    anyorder.layouts,
    anyorder.models,
    anyorder.pyg,
    anyorder.testing,
)
FUNCTIONS = {
    f"{home.__name__}.{name}": found
    for home in HOMES
    for name in getattr(home, "__all__", vars(home))
    if not name.startswith("_")
    and inspect.isroutine(found := inspect.unwrap(getattr(home, name)))
    and found.__module__.startswith("anyorder")
}
ELSEWHERE = {"read_npz": "write_npz", "write_hif": "read_hif"}
"""Names whose example stands at another, which needs both."""
PUBLIC = {
    f"{found.__module__}.{name}": found
    for home in HOMES
    for name in getattr(home, "__all__", vars(home))
    if not name.startswith("_") and inspect.isclass(found := getattr(home, name)) and found.__module__.startswith("anyorder")
}
ABSTRACT = {"IndexSet"}
"""Never made: its kinds have the examples."""


def described(found: Any) -> dict[str, str]:
    """What stands behind the colons of the sections Args and Attributes, by the name before."""
    text = inspect.getdoc(found) or ""
    texts: dict[str, str] = {}
    for section in re.findall(r"^(?:Args|Attributes):\n((?:[ ]{4}.*\n?|\n)*)", text, re.MULTILINE):
        for names, said in re.findall(r"^ {4}(\S[^:]*):((?:.*\n?(?: {8}.*\n?)*))", section, re.MULTILINE):
            texts.update(dict.fromkeys((part.strip() for part in names.split(",")), said))
    return texts


def documented(cls: type) -> set[str]:
    """The names before the colons of the sections Args and Attributes."""
    return set(described(cls))


def shapeless(found: Any, texts: dict[str, str]) -> list[str]:
    """Arguments that are tensors and whose shape nobody says, as (rows, channels)."""
    given = inspect.signature(found).parameters.values()
    tensors = [each.name for each in given if re.match(r"Tensor\b", str(each.annotation))]
    return [name for name in tensors if not re.search(r"\(\w[^)]*[,)]|as (?:of|in) ", texts.get(name, ""))]


def arguments(cls: type) -> list[str]:
    if inspect.isabstract(cls) or not getattr(cls.__init__, "__module__", "").startswith(("anyorder", __name__)):
        return []
    return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_arguments_are_documented(name):
    cls = PUBLIC[name]
    owner = next(base for base in cls.__mro__ if "__init__" in vars(base))  # a class that takes what its base takes
    missing = [argument for argument in arguments(cls) if argument not in documented(cls) | documented(owner)]
    assert not missing, f"{name}: {missing}"
    assert not shapeless(cls.__init__, described(owner) | described(cls))


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions_are_documented_with_shapes_and_an_example(name):
    found = FUNCTIONS[name]
    texts = described(found)
    assert not [argument for argument in inspect.signature(found).parameters if argument not in texts]
    assert not shapeless(found, texts)
    shown = ELSEWHERE.get(found.__name__, found.__name__)
    text = inspect.getdoc(inspect.unwrap(getattr(inspect.getmodule(found), shown))) or ""
    assert ">>> " in text and f"{found.__name__}(" in text


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_classes_have_an_example_and_say_what_their_methods_do(name):
    cls = PUBLIC[name]
    assert cls.__name__ in ABSTRACT or ">>> " in (inspect.getdoc(cls) or "")
    made = {each: getattr(cls, each) for each in vars(cls) if not each.startswith("_")}
    called = [each for each, value in made.items() if inspect.isroutine(value) or isinstance(value, property)]
    assert [each for each in called if not inspect.getdoc(made[each])] == []


def test_the_walk_finds_what_is_missing():
    class Bare:
        """One sentence.

        Args:
            a, b: two of three.
        """

        def __init__(self, a: int, b: int, c: int) -> None: ...

    assert [each for each in arguments(Bare) if each not in documented(Bare)] == ["c"]


def test_the_walk_finds_tensors_without_a_shape():
    def bare(a: Tensor, b: Tensor | None, c: int) -> None:
        """One sentence.

        Args:
            a: (rows, channels).
            b: some numbers.
            c: one number.
        """

    assert shapeless(bare, described(bare)) == ["b"]
