"""Parsers that are filled when they are used, so that a command loads its own domain and no other."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from anyorder.training.registry import Command, function

Fill = Callable[[argparse.ArgumentParser], None]


class LazyParser(argparse.ArgumentParser):
    """A parser whose options are added by ``fill`` when it first parses or prints its help."""

    def __init__(self, *args: Any, fill: Fill | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self._fill = fill
        is_top = " " not in self.prog  # every command takes the option, the first help says so
        text = "print the traceback of any error" if is_top else argparse.SUPPRESS
        self.add_argument("--traceback", action="store_true", default=argparse.SUPPRESS, help=text)

    def filled(self) -> LazyParser:
        """The same parser with all of its options."""
        fill, self._fill = self._fill, None
        if fill is not None:
            fill(self)
        return self

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        return super(LazyParser, self.filled()).parse_known_args(args, namespace)

    def format_help(self) -> str:
        return super(LazyParser, self.filled()).format_help()


def sentence(text: str) -> str:
    """A help line as a description.

    >>> sentence("train a model")
    'Train a model.'
    """
    return f"{text[0].upper()}{text[1:]}."


def add_command(commands: Any, command: Command, name: str) -> LazyParser:
    """Add the command of an experiment; the module with its options is imported when it is used."""

    def fill(parser: argparse.ArgumentParser) -> None:
        function(command.options)(parser)

    parser: LazyParser = commands.add_parser(
        name, aliases=command.aliases, help=command.help, description=sentence(command.help), fill=fill
    )
    return parser
