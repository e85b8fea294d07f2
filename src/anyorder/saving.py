"""Modules in a folder: their settings as JSON, their weights as safetensors; loading makes known classes only."""

from __future__ import annotations

import dataclasses
import inspect
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from anyorder.errors import InputError, reading
from anyorder.files import read_json, read_sealed_json, write_sealed_json
from anyorder.weights import WEIGHTS, check_weights, put_weights, read_weights, save_weights

CONFIG = "config.json"
FEW_AXES, MOST_AXES = 8, 11
"""Of both ends of a map: 4,140 classes, which take no time, and 678,570, which only large files may ask for."""
_MODULES: dict[str, type[SavedModule]] = {}
_VALUES: list[type] = []


def saved_value(cls: type) -> type:
    """Let settings hold values of a class and of those derived from it: frozen dataclasses of plain settings."""
    _VALUES.append(cls)
    return cls


class SavedModule(nn.Module):
    """A module that remembers what it was made from, so that a folder can hold it.

    Settings are plain values (numbers, text, tuples, mappings), kernels, equivalence classes and other such modules. Derive
    your own module from it and pass everything by ``__init__``; its classes must be imported before it is loaded.

    >>> import tempfile
    >>> class Twice(SavedModule):
    ...     def __init__(self, *, channels: int) -> None:
    ...         super().__init__()
    ...         self.linear = nn.Linear(channels, channels)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Twice(channels=3).save(folder)
    ...     Twice.load(folder).linear
    Linear(in_features=3, out_features=3, bias=True)
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        parent: Any = super().__new__
        made: Self = parent(cls) if parent is object.__new__ else parent(cls, *args, **kwargs)
        made.__dict__["_given"] = (args, kwargs)
        return made

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _MODULES[_name(cls)] = cls

    @property
    def settings(self) -> dict[str, Any]:
        """What the module was made from, by name."""
        args, kwargs = self.__dict__["_given"]
        bound = inspect.signature(type(self).__init__).bind(self, *args, **kwargs).arguments
        bound.pop(next(iter(bound)))  # self
        for parameter in inspect.signature(type(self).__init__).parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                bound.update(bound.pop(parameter.name, {}))
            if parameter.kind is parameter.VAR_POSITIONAL and bound.pop(parameter.name, ()):
                raise TypeError(f"{type(self).__name__} takes *{parameter.name}, which has no name to be saved under")
        return dict(bound)

    def save(self, folder: str | Path) -> None:
        """Write settings and weights to a folder, which is made where it is missing."""
        data = {"model": _to_data(self, type(self).__name__)}
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_sealed_json(folder / CONFIG, data)
        save_weights(folder / WEIGHTS, self)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """The module of a folder that ``save`` wrote, in evaluation mode."""
        found = load_module(folder, cls)
        if not isinstance(found, cls):
            raise InputError(f"{folder} holds a {type(found).__name__}, expected a {cls.__name__}")
        return found


def is_saved_module(folder: Path) -> bool:
    """Whether ``save`` of a module has written this folder, and not a training."""
    if not (folder / CONFIG).exists():
        return False
    data = read_json(folder / CONFIG)
    return isinstance(data, dict) and isinstance(data.get("model"), dict) and "run" not in data


def load_module(folder: str | Path, cls: type[SavedModule] | None = None) -> SavedModule:
    """The module of a folder that ``save`` wrote, in evaluation mode; a ``cls`` of its name is taken before others."""
    folder = Path(folder)
    if not is_saved_module(folder):
        raise FileNotFoundError(f"{folder} is not a folder that save() of a module has written")
    weights = read_weights(folder / WEIGHTS)
    with reading(folder / CONFIG, "a configuration of a module"):
        data = read_sealed_json(folder / CONFIG, ("model",))["model"]
        last = str(data.get("module", "")).rpartition(".")[2]
        known = cls if cls is not None and cls.__name__ == last else None
        _check_size(folder / WEIGHTS, weights, data, known)
        with torch.device("cpu"):
            made = _make_module(data, known)
    put_weights(folder / WEIGHTS, weights, made, cast=True)
    return made.eval()


def _check_size(path: Path, weights: dict[str, Tensor], data: dict[str, Any], cls: type[SavedModule] | None) -> None:
    """Refuse settings that do not fit the weights before memory or time is taken for what they describe."""
    for name in ("layers", "num_layers"):
        count = data["settings"].get(name, 0)
        if isinstance(count, int) and count > max(64, len(weights)):
            raise InputError(f"the module has {count!s:.20} layers, and {path} only {len(weights)} tensors")
    _check_orders(data, sum(tensor.numel() for tensor in weights.values()))
    try:
        with torch.device("meta"), warnings.catch_warnings():  # shapes without numbers
            warnings.simplefilter("ignore", UserWarning)  # of layers without channels
            planned = _make_module(data, cls)
    except (RuntimeError, NotImplementedError):  # a module that works with numbers while it is built
        return
    check_weights(path, weights, planned)


def _name(cls: type) -> str:
    """Ours by their names, so that they may move; others with their modules."""
    return cls.__name__ if cls.__module__.startswith("anyorder.") else f"{cls.__module__}.{cls.__qualname__}"


def _to_data(value: Any, where: str) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, SavedModule):
        parts = {key: _to_data(part, f"{where}.{key}") for key, part in value.settings.items()}
        return {"module": _name(type(value)), "settings": parts}
    if isinstance(value, tuple(_VALUES)):
        kept: Any = value
        fields = {field.name: getattr(kept, field.name) for field in dataclasses.fields(kept) if field.init}
        return {"value": _name(type(value)), "settings": _to_data(fields, where)["mapping"]}
    if isinstance(value, Mapping):
        pairs = [[_to_data(key, where), _to_data(part, f"{where}.{key}")] for key, part in value.items()]
        return {"mapping": pairs}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_to_data(part, where) for part in value]
    raise TypeError(
        f"{where} cannot be saved: expected numbers, text, tuples, mappings, kernels, classes or modules derived from "
        f"SavedModule, got {type(value).__name__} {value!r:.80}"
    )


def _from_data(data: Any) -> Any:
    if isinstance(data, list):
        return tuple(_from_data(part) for part in data)
    if not isinstance(data, dict):
        return data
    if "mapping" in data:
        return {_from_data(key): _from_data(part) for key, part in data["mapping"]}
    if "module" in data:
        return _make_module(data)
    cls = _find(data.get("value"), {_name(found): found for root in _VALUES for found in _derived(root)}, "value")
    return cls(**_from_data({"mapping": data["settings"]}))


def _make_module(data: dict[str, Any], cls: type[SavedModule] | None = None) -> SavedModule:
    made = cls or _find(data.get("module"), _MODULES, "module")
    module: SavedModule = made(**{key: _from_data(part) for key, part in data["settings"].items()})
    return module


def _check_orders(data: Any, room: int) -> None:
    """Refuse orders with more classes than there are weights, before the classes are listed."""
    if isinstance(data, list):
        for part in data:
            _check_orders(part, room)
    if not isinstance(data, dict):
        return
    named = [data.get(name) for name in ("order", "order_in", "order_out", "orders")]
    orders = sorted(each for value in named for each in (value if isinstance(value, list) else [value]) if type(each) is int)
    axes = sum(orders[-2:])
    if axes > MOST_AXES or (axes > FEW_AXES and room < 2**axes * axes**2):
        raise InputError(f"it has maps between orders {orders[-2:]!s:.60}, for which {room:,} weights are too few")
    for part in data.values():
        _check_orders(part, room)


def _find(name: Any, known: Mapping[str, type], kind: str) -> type:
    if name not in known:
        raise InputError(f"it names the {kind} {name!r}, which no imported module defines: import the module that does")
    return known[name]


def _derived(cls: Any) -> set[type]:
    found: set[type] = {cls}
    for each in cls.__subclasses__():
        found |= _derived(each)
    return found
