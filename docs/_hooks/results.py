"""The pages of results, from records: no number on them is typed."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from anyorder.experiments import TABLES
from anyorder.training.records import Record, read_records
from anyorder.training.reproduced import page as reproduced
from anyorder.training.tables import Table, render

RECORDS = Path(__file__).parents[2] / "results"


@cache
def pages() -> dict[str, str]:
    """Path below results/ to Markdown, the summary first."""
    records = {name: _records(name) for name in TABLES}
    every = [record for some in records.values() for record in some]
    listed = "\n".join(
        f"- [{_parts(table.title)[0]}]({name}.md): {len(records[name])} records"
        for name, table in TABLES.items()
        if records[name]
    )
    missing = ", ".join(name for name in TABLES if not records[name])
    ending = f"\nNo records yet: {missing}.\n" if missing else ""
    ending += "\nHow settings were chosen: [notes](notes.md).\n"
    index = f"{reproduced(TABLES.values(), every)}\n\n## Tables\n\n{listed}\n{ending}"
    tables = {f"{name}.md": _page(table, records[name]) for name, table in TABLES.items() if records[name]}
    return {"index.md": index, **tables, "notes.md": _notes(), "jets_statistics.md": _read("jets_statistics.md")}


def names() -> list[tuple[str, str]]:
    """A short label and the path of each page; the first, which stands for all, has none."""
    return [
        ("" if name == "index.md" else name[:-3].replace("_", " ").replace("-", " ").capitalize(), name) for name in pages()
    ]


def _records(table: str) -> list[Record]:
    try:
        return list(read_records(RECORDS, table=table))
    except FileNotFoundError:
        return []


def _page(table: Table, records: list[Record]) -> str:
    command = f"```bash\nanyorder table {table.name} --records results --format markdown\n```"
    scales = ", ".join(sorted({record.scale for record in records}))
    title, explained = _parts(table.title)
    head = f"# {title}\n\n{explained}From {len(records)} records ({scales} scale):\n\n{command}\n\n"
    return head + "\n".join(_without_title(render(table, records, form="markdown").splitlines())) + "\n"


def _parts(title: str) -> tuple[str, str]:
    """What a title names, and a paragraph of what explains it: behind its first sentence, or in brackets at its end."""
    if match := re.fullmatch(r"(.*?)(?:\. (.*)| \(((?:[^()]|\([^()]*\))*)\))", title):
        short, *rest = match.groups()
        text = rest[0] or rest[1]
        return short, f"{text[0].upper()}{text[1:]}.\n\n"
    return title, ""


def _without_title(lines: list[str]) -> list[str]:
    """The lines of a table below its own heading, which the page has already."""
    return lines[1:] if lines and lines[0].startswith("#") else lines


def _notes() -> str:
    """The text beside the records, with its links led to the pages made here."""
    text = _read("README.md").replace("# Results", "# Notes on the results", 1)
    return text.replace("(reproduced.md)", "(index.md)").replace("](../docs/", "](../")


def pictures() -> dict[str, bytes]:
    """Pictures and tables of numbers beside the records: path below results/ to content."""
    kept = [path for path in RECORDS.glob("*/*") if path.suffix in (".png", ".svg", ".csv")]
    return {path.relative_to(RECORDS).as_posix(): path.read_bytes() for path in sorted(kept)}


def _read(name: str) -> str:
    return (RECORDS / name).read_text(encoding="utf-8")
