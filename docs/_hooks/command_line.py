"""The page of the command line, from its parsers."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from unittest import mock

from anyorder.cli import parser
from anyorder.cli.lazy import LazyParser


def commands(at: LazyParser) -> Iterator[LazyParser]:
    """All parsers, each before those below it."""
    yield at.filled()
    for action in at._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in dict.fromkeys(action.choices.values()):
                yield from commands(below)


def page() -> str:
    """A section per command with its help."""
    with mock.patch.dict(os.environ, COLUMNS="110"):
        sections = [f"## `{each.prog}`\n\n```text\n{each.format_help().rstrip()}\n```\n" for each in commands(parser())]
    return "\n".join(
        ["# Command line\n\nWhat `--help` says of every command, written by the build from the parsers.\n", *sections]
    )
