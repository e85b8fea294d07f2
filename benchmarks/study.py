"""Runs with changed settings side by side, by what validation says of them: the table of a study.

    python benchmarks/study.py results/studies/kernels --metric F1

A line for each recipe and what was changed in it (``anyorder run --set ...``), with the best value on the validation part,
mean and deviation over seeds. Test scores are not looked at.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path

from anyorder.errors import InputError
from anyorder.training.records import Record

LESS = ("MAE", "loss")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path, help="where the records are, as JSON")
    options.add_argument("--metric", required=True, help="name of the validation metric")
    options.add_argument(
        "--hide", nargs="*", default=[], metavar="KEY", help="settings that all have and that are not shown"
    )
    given = options.parse_args()
    try:
        records = [Record.read(path) for path in sorted(given.folder.rglob("*.json"))]
    except InputError as error:
        raise SystemExit(f"error: {error}") from error
    if not records:
        raise SystemExit(f"error: no records in {given.folder}")
    print("\n".join(table(records, given.metric, given.hide)))


def table(records: Sequence[Record], metric: str, hide: Sequence[str]) -> list[str]:
    """The lines of a markdown table, best first."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        shown = [text for text in record.overrides if text.split("=")[0] not in hide]
        groups.setdefault((record.recipe, ", ".join(shown) or "as it is"), []).append(record)
    sign = 1 if metric in LESS else -1
    scored = [([best(record, metric) for record in some], name, some) for name, some in groups.items()]
    lines = [f"| recipe | changed | seeds | validation {metric} | parameters | minutes |", "|---|---|---|---|---|---|"]
    for values, (recipe, changed), some in sorted(scored, key=lambda entry: sign * statistics.mean(entry[0])):
        deviation = f" ± {statistics.stdev(values):.4f}" if len(values) > 1 else ""
        minutes = statistics.median(record.wall_seconds for record in some) / 60
        lines.append(
            f"| `{recipe}` | {changed} | {len(some)} | {statistics.mean(values):.4f}{deviation} "
            f"| {some[0].parameters:,} | {minutes:.1f} |"
        )
    return lines


def best(record: Record, metric: str) -> float:
    """The best value of the metric in the history, which is of the validation part."""
    values = [entry[metric] for entry in record.history if metric in entry]
    if not values:
        raise SystemExit(f"error: {record.recipe}, seed {record.seed}: no {metric} in its history")
    return min(values) if metric in LESS else max(values)


if __name__ == "__main__":
    main()
