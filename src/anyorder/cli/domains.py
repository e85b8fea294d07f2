"""The commands of the experiments, put together: ``train KIND``, ``draw KIND``, ``data ...`` and their own."""

from __future__ import annotations

import argparse
from typing import Any

from anyorder.cli.lazy import Fill, LazyParser, add_command, sentence
from anyorder.experiments import experiments
from anyorder.training.registry import function

_GROUPS = {"train": "train a model on your own data", "draw": "draw what trained models answer"}


def add_groups(commands: Any) -> None:
    """Add the commands of two words, such as ``train KIND``, but for those of ``data``, which has its own place."""
    found = [
        command.words.split()[0] for experiment in experiments() for command in experiment.commands if " " in command.words
    ]
    for group in dict.fromkeys([*_GROUPS, *found]):
        if group != "data":
            text = _GROUPS.get(group, f"{group} what installed experiments offer")
            commands.add_parser(group, help=text, description=sentence(text), fill=_kinds_of(group))


def _kinds_of(group: str) -> Fill:
    def fill(parser: argparse.ArgumentParser) -> None:
        add_below(group, parser.add_subparsers(dest="kind", metavar="KIND", required=True, parser_class=LazyParser))

    return fill


def add_below(group: str, commands: Any) -> None:
    """Add the commands of the experiments whose words begin with a group; an empty group has those of one word."""
    for experiment in experiments():
        for command in experiment.commands:
            first, _, rest = command.words.rpartition(" ")
            if first == group:
                add_command(commands, command, rest)


def add_predict_options(parser: argparse.ArgumentParser) -> None:
    """What ``anyorder predict`` takes for the models of each experiment."""
    for experiment in experiments():
        if experiment.predict is not None:
            function(experiment.predict)(parser)


def add_explain_options(parser: argparse.ArgumentParser) -> None:
    """What ``anyorder explain`` takes for the models of each experiment."""
    for experiment in experiments():
        if experiment.explain is not None:
            function(experiment.explain)(parser)
