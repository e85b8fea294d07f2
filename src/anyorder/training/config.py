"""Configurations: frozen values that can be written down, read back and changed by name."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import math
import types
import typing
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from anyorder.errors import InputError
from anyorder.suggest import nearest
from anyorder.training import registry

Value = TypeVar("Value")
_TYPES: dict[str, type] = {}


def configurable(cls: type[Value]) -> type[Value]:
    """Register a frozen dataclass, so that configurations may contain it and files may name it."""
    if not dataclasses.is_dataclass(cls):
        raise TypeError(f"a configuration must be a dataclass, got {cls.__name__}")
    known = _TYPES.setdefault(cls.__name__, cls)
    if known.__qualname__ != cls.__qualname__ or known.__module__ != cls.__module__:
        raise InputError(f"two configurations are called {cls.__name__}: {known.__module__} and {cls.__module__}")
    return cls


def find_type(name: Any) -> type | None:
    """The configuration type of a name, from the module that is registered for it; None where there is none."""
    if name not in _TYPES:
        name = registry.current_name(name)
    home = None if name in _TYPES else registry.home_of(name)
    if home is not None:
        importlib.import_module(home)
        if name not in _TYPES:
            raise InputError(f"{home} is registered as the module of the configuration {name}, which it does not define")
    return _TYPES.get(name)


def _known() -> list[str]:
    return [*{*_TYPES, *registry.homes()}]


def to_data(value: Any) -> Any:
    """Plain data (dicts, lists, numbers, text) for a configuration."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        if type(value).__name__ not in _TYPES:
            raise TypeError(f"{type(value).__name__} is not a registered configuration")
        fields = {field.name: to_data(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"type": type(value).__name__, **fields}
    if isinstance(value, (list, tuple)):
        return [to_data(part) for part in value]
    if isinstance(value, dict):
        return {str(key): to_data(part) for key, part in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"a configuration cannot hold {type(value).__name__}: {value!r}")


def from_data(data: Any) -> Any:
    """The configuration that plain data describes; only registered types are ever made."""
    if isinstance(data, list):
        return tuple(from_data(part) for part in data)
    if not isinstance(data, dict):
        return data
    if "type" not in data:
        return {key: from_data(part) for key, part in data.items()}
    return make(data["type"], {key: from_data(part) for key, part in data.items() if key != "type"})


def make(name: Any, settings: dict[str, Any]) -> Any:
    """A registered configuration from its settings, each of the type that is declared."""
    cls = find_type(name)
    if cls is None:
        raise InputError(f"unknown configuration type {name!r}{nearest(str(name), _known())}")
    return construct(cls, settings)


def construct(cls: type, settings: dict[str, Any]) -> Any:
    """A frozen dataclass from its settings, each of the type that is declared."""
    name, hints = cls.__name__, _hints(cls)
    for key in settings:
        if key not in hints:
            raise InputError(f"{name} has no setting {key!r}{nearest(key, hints)}")
    given = {key: _fit(value, hints[key], f"{name}.{key}") for key, value in settings.items()}
    missing = [field.name for field in dataclasses.fields(cls) if _is_needed(field) and field.name not in given]
    if missing:
        raise InputError(f"{name} needs {missing}")
    with checking_settings():
        return cls(**given)


@contextmanager
def checking_settings() -> Iterator[None]:
    """What a configuration has against its settings is the user's to mend, whoever checks it."""
    try:
        yield
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(str(error)) from error


@cache
def _hints(cls: type) -> dict[str, Any]:
    """The declared type of each setting."""
    hints = typing.get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls)}


def _is_needed(field: dataclasses.Field[Any]) -> bool:
    return field.init and field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def override(value: Value, setting: str) -> Value:
    """A configuration with one setting changed, written ``path.to.key=value``.

    The new value is a Python literal, a registered configuration written as a call, or plain text.
    """
    path, separator, text = setting.partition("=")
    if not separator or not path:
        raise InputError(f"a setting is written key=value, got {setting!r}")
    return _replace(value, path.strip().split("."), text.strip(), path.strip())


def _replace(value: Any, path: list[str], text: str, whole: str) -> Any:
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        raise InputError(f"cannot set {whole!r}: {value!r} has no settings")
    hints = _hints(type(value))
    head, *rest = path
    if head not in hints:
        raise InputError(f"{type(value).__name__} has no setting {head!r}{nearest(head, hints)}")
    if rest:
        with checking_settings():
            return dataclasses.replace(value, **{head: _replace(getattr(value, head), rest, text, whole)})
    new = _parse(text) if hints[head] is not str else text
    if new is None and not _accepts(None, hints[head]):
        new = text  # the word none
    with checking_settings():
        return dataclasses.replace(value, **{head: _fit(new, hints[head], whole)})


def _fit(new: Any, hint: Any, key: str) -> Any:
    """The value as its declared type asks, or an error that says what was expected."""
    if isinstance(new, int) and not isinstance(new, bool) and _accepts(0.0, hint) and not _accepts(new, hint):
        new = float(new) if abs(new) < 2**1000 else math.inf
    if isinstance(new, int) and abs(new) >= 2**63:
        raise InputError(f"{key} expects a number below 2^63, got one of {new.bit_length()} bits")
    if isinstance(new, float) and not math.isfinite(new):
        raise InputError(f"{key} expects a finite number, got {new}")
    if isinstance(new, list):
        new = tuple(new)
    if not _accepts(new, hint):
        choices = _choices(hint)
        raise InputError(f"{key} expects {_name(hint)}, got {new!r}{nearest(str(new), choices) if choices else ''}")
    return new


def _accepts(value: Any, hint: Any) -> bool:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(_accepts(value, option) for option in arguments)
    if origin is typing.Literal:
        return any(value == option and type(value) is type(option) for option in arguments)
    if hint is None or hint is type(None):
        return value is None
    if origin is tuple:
        return isinstance(value, tuple) and _accepts_parts(value, arguments)
    if origin is not None:
        return isinstance(value, origin if isinstance(origin, type) else object)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint) if isinstance(hint, type) else True


def _accepts_parts(values: tuple[Any, ...], hints: tuple[Any, ...]) -> bool:
    if hints[1:] == (...,):
        return all(_accepts(value, hints[0]) for value in values)
    return len(values) == len(hints) and all(_accepts(value, hint) for value, hint in zip(values, hints, strict=True))


def _choices(hint: Any) -> list[str]:
    """What may be written for a type of few values, or of configurations."""
    if typing.get_origin(hint) is typing.Literal:
        return [str(option) for option in typing.get_args(hint)]
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return [choice for option in typing.get_args(hint) for choice in _choices(option)]
    if hint is bool:
        return ["True", "False"]
    if hint is type(None):
        return ["None"]
    return [name for name, cls in _TYPES.items() if isinstance(hint, type) and issubclass(cls, hint)]


def _name(hint: Any) -> str:
    """A type as it is written.

    >>> _name(int), _name(int | None), _name(typing.Literal["a", "b"]), _name(tuple[int, ...])
    ('int', 'int | None', "'a' | 'b'", 'tuple[int, ...]')
    """
    if typing.get_origin(hint) is typing.Literal:
        return " | ".join(repr(option) for option in typing.get_args(hint))
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " | ".join(_name(option) for option in typing.get_args(hint))
    return "None" if hint is type(None) else hint.__name__ if type(hint) is type else str(hint)


def _parse(text: str) -> Any:
    words: dict[str, Any] = {"true": True, "false": False, "none": None}
    if text in words:
        return words[text]
    if find_type(text) is not None:
        return make(text, {})
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # of texts such as 1is: they are taken as they are
            return _evaluate(ast.parse(text, mode="eval").body)
    except (SyntaxError, MemoryError, _NotAValue):  # Python's word for brackets in brackets without end
        return text


class _NotAValue(Exception):
    """The text is no literal and no configuration: take it as it is."""


def _evaluate(node: ast.expr) -> Any:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        name = node.func.id
        cls = find_type(name)
        order = [] if cls is None else [field.name for field in dataclasses.fields(cls)]
        if cls is not None and len(node.args) > len(order):
            raise InputError(f"{name} has {len(order)} settings, got {len(node.args)}")
        placed = {key: _evaluate(argument) for key, argument in zip(order, node.args, strict=False)}
        for keyword in node.keywords:
            if keyword.arg is None or keyword.arg in placed:
                raise InputError(f"{name} takes each setting once, by name, got {keyword.arg or '**'} again")
            placed[keyword.arg] = _evaluate(keyword.value)
        return make(name, placed)
    if isinstance(node, (ast.Tuple, ast.List)):
        return tuple(_evaluate(part) for part in node.elts)
    try:
        return ast.literal_eval(node)
    except ValueError as error:
        raise _NotAValue from error
