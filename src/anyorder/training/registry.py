"""Experiments by name: where their tables, configurations and commands are. A module is imported when it is asked for."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

GROUP = "anyorder.experiments"
"""The group of entry points in which installed packages name their experiments."""


@dataclass(frozen=True)
class Command:
    """A command of an experiment: ``words`` such as "train molecules", and the function that adds its options."""

    words: str
    help: str
    """What it does, in one line."""
    options: str
    """``module:function``; the function takes the parser and sets ``run``."""
    sees: str = ""
    """Of ``train KIND``: ``module:function`` that takes what is seen of a file (`anyorder.peek.FileLook`) and the other
    arguments, and says why it is of this kind, or nothing. Its module should be quick to import."""
    aliases: tuple[str, ...] = ()
    """Other names for the last of its words."""


@dataclass(frozen=True)
class Experiment:
    """What a domain offers, by name. Modules and functions are named, not imported.

    >>> Experiment("widgets", tables={"widgets": "shop.recipes"}, types={"shop.task": ("Widgets",)}).name
    'widgets'
    """

    name: str
    tables: Mapping[str, str] = field(default_factory=dict)
    """Name of a table to the module that has its ``TABLE`` and its ``RECIPES``."""
    types: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Module to the configurations in it: tasks and models that files and ``--set`` may name."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Earlier name of a configuration to the one it has now: older files name it so."""
    commands: Sequence[Command] = ()
    predict: str | None = None
    """``module:function`` that adds options to ``anyorder predict``, which takes the parser."""
    explain: str | None = None
    """The same for ``anyorder explain``."""


_EXPERIMENTS: dict[str, Experiment] = {}
_TABLES: dict[str, str] = {}
_HOMES: dict[str, str] = {}


def register(experiment: Experiment) -> None:
    """Make an experiment known: its tables, its configurations, its commands. Twice the same is once."""
    known = _EXPERIMENTS.get(experiment.name)
    if known == experiment:
        return
    if known is not None:
        raise ValueError(f"two experiments are called {experiment.name!r}: {known} and {experiment}")
    homes = {name: module for module, names in experiment.types.items() for name in names}
    commands = {command.words: command.options for command in experiment.commands}
    taken = {command.words: command.options for other in _EXPERIMENTS.values() for command in other.commands}
    for kind, new, old in (
        ("table", experiment.tables, _TABLES),
        ("configuration", homes, _HOMES),
        ("command", commands, taken),
    ):
        for name in new.keys() & old.keys():
            raise ValueError(f"the {kind} {name!r} of {new[name]} is known already, from {old[name]}: use another name")
    _EXPERIMENTS[experiment.name] = experiment
    _TABLES.update(experiment.tables)
    _HOMES.update(homes)


def experiments() -> list[Experiment]:
    """All experiments: of this package, of installed ones, and those that were registered in this process."""
    _discover()
    return list(_EXPERIMENTS.values())


def tables() -> dict[str, str]:
    """The module of each table."""
    _discover()
    return dict(_TABLES)


def homes() -> dict[str, str]:
    """The module of each configuration."""
    _discover()
    return dict(_HOMES)


def home_of(name: str) -> str | None:
    """The module of a configuration; installed packages are looked through only if it is not known without."""
    return _HOMES.get(name) or homes().get(name)


def current_name(name: str) -> str:
    """The name that a configuration has now."""
    return next((each.aliases[name] for each in experiments() if name in each.aliases), name)


def function(place: str) -> Any:
    """The function of a ``module:name``."""
    module, separator, name = place.partition(":")
    if not separator:
        raise ValueError(f"a function is named module:function, got {place!r}")
    return getattr(importlib.import_module(module), name)


@cache
def _discover() -> None:
    """Register what installed packages offer; one that cannot be loaded is left out with a warning."""
    from importlib.metadata import entry_points  # takes longer to import than everything else here

    for point in entry_points(group=GROUP):
        try:
            found = point.load()
            if not isinstance(found, Experiment):
                raise TypeError(f"expected an Experiment, got {type(found).__name__}")
            register(found)
        except Exception as error:
            warnings.warn(f"the experiment {point.value!r} is left out: {type(error).__name__}: {error}", stacklevel=2)
