"""``python -m fuzz --minutes 10``: trials of all readers in turns, a table of outcomes, exit code 1 if one is not ours."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

from fuzz.trial import OUTCOMES

COLUMNS = (*OUTCOMES, "crashed")


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--first", type=int, default=0, help="number of the first trial: other numbers, other changes")
    parser.add_argument("--record", type=Path, help="JSON file to which the counts are added")
    args = parser.parse_args()
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    wrapped: Counter[str] = Counter()
    found: list[str] = []
    ends = time.monotonic() + 60 * args.minutes
    first = args.first
    while (left := ends - time.monotonic()) > 0:
        crashed = _work(left, first, counts, wrapped, found)
        if crashed is None:
            break
        counts[crashed.partition("|")[0]]["crashed"] += 1
        found.append(f"crashed: {crashed}")
        first += 1_000_000  # after a crash the trials begin at other numbers
    print(table(counts))
    print("wrapped decoders' errors: " + (", ".join(f"{n} {name}" for name, n in wrapped.most_common()) or "none"))
    for line in found[:50]:
        print(line)
    if args.record is not None:
        _add_to(args.record, counts)
    return int(any(count[bad] for count in counts.values() for bad in ("foreign", "slow", "crashed")))


def _work(
    seconds: float, first: int, counts: dict[str, Counter[str]], wrapped: Counter[str], found: list[str]
) -> str | None:
    """Let a worker run; the trial it crashed in, or None."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name) / "place"
        line = [sys.executable, "-m", "fuzz.worker", "--seconds", str(seconds), "--first", str(first), "--place", str(place)]
        worker = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
        assert worker.stdout is not None
        for text in worker.stdout:
            if not text.startswith("{"):
                continue
            said = json.loads(text)
            counts[said["reader"]].update(said["counts"])
            wrapped.update(said["wrapped"])
            found += [f"{said['reader']} {number}: {reason}" for number, reason in said["found"]]
        if worker.wait() == 0:
            return None
        if not place.exists():
            raise SystemExit(f"the worker ended with {worker.returncode} before the first trial")
        return f"{place.read_text()} (exit code {worker.returncode})"


def table(counts: dict[str, Counter[str]]) -> str:
    """Markdown: a line per reader, and the sum."""
    rows = [[name, sum(count.values()), *(count[kind] for kind in COLUMNS)] for name, count in sorted(counts.items())]
    rows.append(["all", *(sum(row[n] for row in rows) for n in range(1, len(COLUMNS) + 2))])
    lines = [f"| {row[0]} | " + " | ".join(f"{number:,}" for number in row[1:]) + " |" for row in rows]
    return "\n".join([f"| reader | trials | {' | '.join(COLUMNS)} |", "|---|" + "---:|" * (len(COLUMNS) + 1), *lines])


def _add_to(path: Path, counts: dict[str, Counter[str]]) -> None:
    known = json.loads(path.read_text()) if path.exists() else {}
    total = {name: Counter(known.get(name, {})) + count for name, count in counts.items()}
    path.write_text(json.dumps({**known, **total}, indent=1, sort_keys=True) + "\n")
    print(f"\nsum of all runs in {path}:\n{table({name: Counter(count) for name, count in {**known, **total}.items()})}")


if __name__ == "__main__":
    sys.exit(main())
