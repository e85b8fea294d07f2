"""Public names say what they are, and those of the package itself show it in an example, which runs as a doctest."""

import importlib
import inspect

import pytest

import anyorder

MODULES = (
    "layouts",
    "layers",
    "models",
    "algebra",
    "convert",
    "estimators",
    "testing",
    "training.checkpoints",
    "training.web",
)
ABSTRACT = {"IndexSet"}  # never made: its kinds have the examples
PUBLIC = {name: getattr(anyorder, name) for name in anyorder.__all__ if callable(getattr(anyorder, name))}


@pytest.mark.parametrize("module", MODULES)
def test_every_public_class_and_function_has_a_docstring(module):
    found = importlib.import_module(f"anyorder.{module}")
    names = getattr(found, "__all__", None) or [name for name in vars(found) if not name.startswith("_")]
    known = {name: getattr(found, name) for name in names}
    made = [name for name, value in known.items() if inspect.isclass(value) or inspect.isfunction(inspect.unwrap(value))]
    ours = [name for name in made if known[name].__module__.startswith("anyorder")]
    assert ours
    assert [name for name in ours if not (known[name].__doc__ or "").strip()] == []


@pytest.mark.parametrize("name", [name for name in PUBLIC if name not in ABSTRACT])
def test_every_name_of_the_package_has_an_example(name):
    assert ">>> " in (inspect.getdoc(PUBLIC[name]) or ""), f"{name} has no example"


def test_help_on_the_package_says_what_it_is_for():
    assert "any order" in (anyorder.__doc__ or "")
