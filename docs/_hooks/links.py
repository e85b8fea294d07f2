"""Links that pages have in the repository, out of their folder, and where they lead on the site."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import results

ROOT = Path(__file__).parents[2]
_OUT = re.compile(r"\]\((\.\./[^)#]+)(?=[)#])")
_PAGES = {
    "results/README.md": "results/notes.md",
    "results/reproduced.md": "results/index.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
}


@cache
def place(path: str) -> str:
    """Where a file of the repository is on the site; a file that has no page of its own is copied.

    >>> place("examples/own_sets.py"), place("SECURITY.md")
    ('project/examples.md', 'project/security.md')
    """
    if path in _PAGES:
        return _PAGES[path]
    if path.startswith("examples"):
        return "project/examples.md"
    if path.startswith("results/") and path.removeprefix("results/") in {**results.pages(), **results.pictures()}:
        return path
    if not (ROOT / path).is_file():
        raise FileNotFoundError(f"a page links to {path}, which is not a file of the repository")
    return f"repository/{path}"


def copies() -> dict[str, bytes]:
    """The files that pages link to and that have no page of their own."""
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")]
    linked = {found.removeprefix("../") for text in pages for found in _OUT.findall(text)}
    return {place(path): (ROOT / path).read_bytes() for path in sorted(linked) if place(path).startswith("repository/")}


def led(markdown: str) -> str:
    """A page of the folder ``docs`` with its links led to the site."""
    return _OUT.sub(lambda found: f"]({place(found[1].removeprefix('../'))}", markdown)
