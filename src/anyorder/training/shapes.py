"""What a model must know of its data: a frozen value per task, kept as plain data beside the weights."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from anyorder.training import config

Self = TypeVar("Self", bound="Shapes")


@dataclass(frozen=True)
class Shapes:
    """The base of what tasks tell models. Subclasses are frozen dataclasses of numbers, text, tuples and other shapes.

    >>> @dataclass(frozen=True)
    ... class Points(Shapes):
    ...     channels: int
    ...     mean: tuple[float, ...] | None = None
    >>> Points(2, (0.5, 0.5)).to_data(), Points.from_data({"channels": 2, "of": "a later version"})
    ({'channels': 2, 'mean': [0.5, 0.5]}, Points(channels=2, mean=None))
    """

    def to_data(self) -> dict[str, Any]:
        """Plain data for a file; what is None is left out."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: _plain(value) for name, value in values.items() if value is not None}

    @classmethod
    def from_data(cls: type[Self], data: Mapping[str, Any]) -> Self:
        """Read what ``to_data`` wrote, each value of its declared type; names that are not known are left out."""
        hints = typing.get_type_hints(cls)
        names = [field.name for field in dataclasses.fields(cls) if data.get(field.name) is not None]
        made: Self = config.construct(cls, {name: _read(data[name], hints[name]) for name in names})
        return made


def _plain(value: Any) -> Any:
    return value.to_data() if isinstance(value, Shapes) else config.to_data(value)


def _read(value: Any, hint: Any) -> Any:
    for option in (hint, *typing.get_args(hint)):
        if isinstance(option, type) and issubclass(option, Shapes) and isinstance(value, dict):
            return option.from_data(value)
    return config.from_data(value)
