"""Help texts: every option has one, and it begins with what the option is."""

import argparse
import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout

import pytest

from anyorder.cli import main, parser
from anyorder.cli.lazy import LazyParser

PREPOSITIONS = ("of", "at", "as", "in", "by", "from", "for", "to", "with", "between", "against", "default:", "such")
ODD = re.compile(r"unless told|go(es)? on\b|work(s|ed)? out again|one a line|\bblanks\b|tabulator", re.IGNORECASE)


def commands(at: LazyParser, name: str = "") -> Iterator[tuple[str, LazyParser]]:
    """All parsers of the command line, with their options."""
    yield name.strip(), at.filled()
    for action in at._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, below in action.choices.items():
                yield from commands(below, f"{name} {word}")


COMMANDS = dict(commands(parser()))


def test_all_commands_are_seen():
    assert {"run", "train molecules", "train hyperedges", "data simulate", "draw delaunay", "explain", "predict"} <= {
        *COMMANDS
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_help_that_begins_with_what_it_is(name):
    for action in COMMANDS[name]._actions:
        if isinstance(action, argparse._SubParsersAction):
            texts = {choice.dest: choice.help for choice in action._choices_actions}
        else:
            texts = {action.dest: action.help}
        for option, text in texts.items():
            assert text, f"{name}: {option} has no help"
            assert text.split()[0] not in PREPOSITIONS, f"{name}: {option}: {text}"
            assert not text.endswith("."), f"{name}: {option}: {text}"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_printed_in_plain_words(name):
    text = io.StringIO()
    with redirect_stdout(text), pytest.raises(SystemExit) as ended:
        main([*name.split(), "--help"])
    assert ended.value.code == 0
    assert not ODD.search(text.getvalue())
