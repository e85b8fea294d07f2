"""The pages of results, from records: no number on them is typed."""

from __future__ import annotations

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
        f"- [{table.title}]({name}.md): {len(records[name])} records" for name, table in TABLES.items() if records[name]
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
    head = f"# {table.title}\n\nFrom {len(records)} records ({scales} scale):\n\n{command}\n\n"
    return head + render(table, records, form="markdown") + "\n"


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
