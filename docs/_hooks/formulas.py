"""Formulas of docstrings and pages as MathML, which browsers draw without a script."""

from __future__ import annotations

import re
from typing import Any

import griffe
from latex2mathml.converter import convert

_BLOCK = re.compile(r"^\.\. math:: *(.+)$", re.MULTILINE)
_INLINE = re.compile(r":math:`([^`]+)`")
_EXAMPLE = re.compile(r"^>>> .*(?:\n(?!$).*)*", re.MULTILINE)
_TOGETHER = re.compile(r"^( +)(\w+(?:, \w+)+): (.*)$", re.MULTILINE)
_ROLE = re.compile(r":(?:class|func|meth|mod):`~?([^`]+)`")


def with_formulas(text: str) -> str:
    """Markdown in place of the reStructuredText that docstrings hold.

    >>> with_formulas(":class:`Features` and :math:`x`")[:24]
    '`Features` and <math xml'
    """
    text = _BLOCK.sub(lambda found: f"\n{convert(found[1].strip(), display='block')}\n", text)
    text = _INLINE.sub(lambda found: convert(found[1]), text)
    text = _EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", text)
    text = _TOGETHER.sub(_each_its_line, text)
    return _ROLE.sub(r"`\1`", text)


def _each_its_line(found: re.Match[str]) -> str:
    """Arguments that share a description, one by one."""
    indent, names, text = found.groups()
    return "\n".join(f"{indent}{name}: {text}" for name in names.split(", "))


class Formulas(griffe.Extension):
    """Rewrites docstrings before they are shown."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = with_formulas(obj.docstring.value)
