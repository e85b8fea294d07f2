"""Configurations: frozen values that can be written down, read back and changed by name."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import types
import typing
from typing import Any, TypeVar

Value = TypeVar("Value")
_TYPES: dict[str, type] = {}


def configurable(cls: type[Value]) -> type[Value]:
    """Register a frozen dataclass, so that configurations may contain it and files may name it."""
    if not dataclasses.is_dataclass(cls):
        raise TypeError(f"a configuration must be a dataclass, got {cls.__name__}")
    known = _TYPES.setdefault(cls.__name__, cls)
    if known.__qualname__ != cls.__qualname__ or known.__module__ != cls.__module__:
        raise ValueError(f"two configurations are called {cls.__name__}: {known.__module__} and {cls.__module__}")
    return cls


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
    name = data["type"]
    if name not in _TYPES:
        raise ValueError(f"unknown configuration type {name!r}{nearest(str(name), _TYPES)}")
    cls = _TYPES[name]
    fields = {field.name for field in dataclasses.fields(cls)}
    given = {key: from_data(part) for key, part in data.items() if key != "type"}
    for key in given:
        if key not in fields:
            raise ValueError(f"{name} has no setting {key!r}{nearest(key, fields)}")
    return cls(**given)


def override(value: Value, setting: str) -> Value:
    """A configuration with one setting changed, written ``path.to.key=value``.

    The new value is a Python literal, a registered configuration written as a call, or plain text.
    """
    path, separator, text = setting.partition("=")
    if not separator or not path:
        raise ValueError(f"a setting is written key=value, got {setting!r}")
    return _replace(value, path.strip().split("."), _parse(text.strip()), path.strip())


def _replace(value: Any, path: list[str], new: Any, whole: str) -> Any:
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        raise ValueError(f"cannot set {whole!r}: {value!r} has no settings")
    fields = {field.name for field in dataclasses.fields(value)}
    head, *rest = path
    if head not in fields:
        raise ValueError(f"{type(value).__name__} has no setting {head!r}{nearest(head, fields)}")
    current = getattr(value, head)
    if rest:
        return dataclasses.replace(value, **{head: _replace(current, rest, new, whole)})
    hint = typing.get_type_hints(type(value)).get(head, Any)
    return dataclasses.replace(value, **{head: _fit(new, hint, whole)})


def _fit(new: Any, hint: Any, key: str) -> Any:
    """The value as its declared type asks, or an error that says what was expected."""
    if isinstance(new, int) and not isinstance(new, bool) and _accepts(float(new), hint) and not _accepts(new, hint):
        return float(new)
    if isinstance(new, list):
        new = tuple(new)
    if not _accepts(new, hint):
        choices = typing.get_args(hint) if typing.get_origin(hint) is typing.Literal else ()
        near = nearest(str(new), [str(choice) for choice in choices]) if choices else ""
        name = getattr(hint, "__name__", None) if not choices and not typing.get_args(hint) else str(hint)
        raise ValueError(f"{key} expects {name}, got {new!r}{near}")
    return new


def _accepts(value: Any, hint: Any) -> bool:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(_accepts(value, option) for option in arguments)
    if origin is typing.Literal:
        return value in arguments
    if hint is None or hint is type(None):
        return value is None
    if origin is not None:
        return isinstance(value, origin if isinstance(origin, type) else object)
    if hint is float:
        return isinstance(value, float)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint) if isinstance(hint, type) else True


def _parse(text: str) -> Any:
    try:
        return _evaluate(ast.parse(text, mode="eval").body)
    except (SyntaxError, _NotAValue):
        return text


class _NotAValue(Exception):
    """The text is no literal and no configuration: take it as it is."""


def _evaluate(node: ast.expr) -> Any:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id not in _TYPES:
            raise ValueError(f"unknown configuration type {node.func.id!r}{nearest(node.func.id, _TYPES)}")
        keywords = {keyword.arg: _evaluate(keyword.value) for keyword in node.keywords if keyword.arg}
        return _TYPES[node.func.id](*[_evaluate(argument) for argument in node.args], **keywords)
    if isinstance(node, (ast.Tuple, ast.List)):
        return tuple(_evaluate(part) for part in node.elts)
    try:
        return ast.literal_eval(node)
    except ValueError as error:
        raise _NotAValue from error


def nearest(name: str, known: typing.Iterable[str]) -> str:
    """A hint for an error message: the known name that was probably meant, or all of them.

    >>> nearest("leraning_rate", ["learning_rate", "seed"])
    "; did you mean 'learning_rate'?"
    """
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else f"; expected one of {names}"
