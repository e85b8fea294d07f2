"""Experiments by name. ``register`` adds one; a table, its recipes and its models are imported when they are asked for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from anyorder.experiments.builtin import BUILTIN
from anyorder.suggest import nearest
from anyorder.training.registry import Command, Experiment, experiments, register, tables

if TYPE_CHECKING:
    from anyorder.training.run import Recipe
    from anyorder.training.tables import Table

    RECIPES: dict[str, Recipe]
    TABLES: dict[str, Table]

_HOMES = {"Recipe": "anyorder.training.run", "Table": "anyorder.training.tables"}
for _experiment in BUILTIN:
    register(_experiment)


def table_names() -> list[str]:
    """The names of all tables, without importing them."""
    return [*tables()]


def find_table(name: str) -> Table:
    """The table of a name."""
    table: Table = _module(name).TABLE
    return table


def recipes_of(name: str) -> dict[str, Recipe]:
    """The recipes of a table, by name."""
    return {recipe.name: recipe for recipe in _module(name).RECIPES}


def find(name: str) -> Recipe:
    """The recipe of a name, which begins with its table."""
    table = name.partition("/")[0]
    if table in tables() and name in (recipes := recipes_of(table)):
        return recipes[name]
    raise ValueError(f"unknown recipe {name!r}{nearest(name, _all_recipes())}")


def below(name: str) -> list[Recipe]:
    """The recipes of a table, or of a dataset of it."""
    table = name.partition("/")[0]
    known = recipes_of(table) if table in tables() else {}
    found = [recipe for key, recipe in known.items() if key == name or key.startswith(name.rstrip("/") + "/")]
    if not found:
        raise ValueError(f"unknown recipe or table {name!r}{nearest(name, [*tables(), *_all_recipes()])}")
    return found


def __getattr__(name: str) -> Any:
    """All recipes and all tables, for those who want to look through them: imports every experiment."""
    if name == "RECIPES":
        return _all_recipes()
    if name == "TABLES":
        return {table: find_table(table) for table in tables()}
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _module(table: str) -> Any:
    known = tables()
    if table not in known:
        raise ValueError(f"unknown table {table!r}{nearest(table, known)}")
    return importlib.import_module(known[table])


def _all_recipes() -> dict[str, Recipe]:
    return {name: recipe for table in tables() for name, recipe in recipes_of(table).items()}


__all__ = [
    "RECIPES",
    "TABLES",
    "Command",
    "Experiment",
    "Recipe",
    "Table",
    "below",
    "experiments",
    "find",
    "find_table",
    "recipes_of",
    "register",
    "table_names",
]
