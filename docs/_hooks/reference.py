"""The pages of the reference, from what modules make public."""

from __future__ import annotations

import importlib
import inspect
import warnings
from collections.abc import Iterator
from types import ModuleType

PAGES = {
    "layouts": ("Layouts", "anyorder.layouts"),
    "layers": ("Layers", "anyorder.layers"),
    "models": ("Models", "anyorder.models"),
    "algebra": ("Algebra", "anyorder.algebra"),
    "convert": ("Conversion", "anyorder.convert"),
    "pyg": ("PyTorch Geometric", "anyorder.pyg"),
    "estimators": ("Estimators", "anyorder.estimators"),
    "testing": ("Testing", "anyorder.testing"),
    "training": ("Training", "anyorder.training.checkpoints"),
}


def pages() -> dict[str, str]:
    """Path below reference/ to Markdown: a heading per public name, filled by mkdocstrings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of libraries that modules import
        return {f"{name}.md": _page(title, importlib.import_module(module)) for name, (title, module) in PAGES.items()}


def public_names(module: ModuleType) -> Iterator[tuple[str, str]]:
    """Public names of a module and where they are written."""
    for name in getattr(module, "__all__", None) or _own(module):
        value = getattr(module, name)
        home = getattr(value, "__module__", "") if hasattr(value, "__qualname__") else ""
        yield name, home if home.startswith("anyorder.") else _home_of_value(module, name)


def _own(module: ModuleType) -> list[str]:
    written = inspect.getmembers(module, lambda value: getattr(value, "__module__", "") == module.__name__)
    return [name for name, value in written if callable(value) and not name.startswith("_")]


def _home_of_value(module: ModuleType, name: str) -> str:
    """A constant has no home of its own: the submodule that has it."""
    for below in vars(module).values():
        if inspect.ismodule(below) and below.__name__.startswith(f"{module.__name__}.") and hasattr(below, name):
            return below.__name__
    return module.__name__


def _page(title: str, module: ModuleType) -> str:
    entries = "\n\n".join(f"::: {home}.{name}" for name, home in public_names(module))
    return f"# {title}\n\n`{module.__name__}`: {inspect.getdoc(module)}\n\n{entries}\n"
