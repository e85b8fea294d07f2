"""``python -m kills --runs 20``: kills, double starts and full disks of five kinds of training, in one table."""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kills.kinds import commands, make_data
from kills.processes import finish, kill_after, start, warm_up

COLUMNS = ("killed", "equal after a kill", "double starts", "refused", "equal after two", "full disks", "equal after that")


@dataclass
class Bench:
    """A kind of training, its result when nothing happens, and how long that takes."""

    line: list[str]
    work: Path
    log: Path
    whole: Any = None
    seconds: float = 0.0

    def fresh(self) -> Path:
        """The folder of a new run."""
        folder = Path(tempfile.mkdtemp(dir=self.work))
        folder.rmdir()
        return folder

    def begin(self, folder: Path, **limits: int) -> int:
        return start([*self.line, "--out", str(folder)], self.log, **limits)

    def complete(self, folder: Path, *, done: bool = False) -> bool:
        """Run the command again unless it is done; whether the result is what it is when nothing happens."""
        code = 0 if done else finish(self.begin(folder))
        good = code == 0 and result(folder) == self.whole
        shutil.rmtree(folder, ignore_errors=True)
        return good


def result(folder: Path) -> Any:
    """All weights of a run to the last bit, its metrics and its history."""
    record = json.loads(next(folder.rglob("record.json")).read_text())
    weights = next(folder.rglob("model.safetensors")).read_bytes()
    return weights, record["metrics"], record["history"]


def kill(bench: Bench, rng: random.Random, count: Counter[str]) -> None:
    """SIGKILL at any moment, once or twice, and the same command again."""
    folder = bench.fresh()
    killed, code = 0, -9
    for _ in range(rng.choice((1, 1, 2))):
        if code == -9:  # one that is done is not started again
            code = kill_after(bench.begin(folder), rng.uniform(0.02, 1.0) * bench.seconds)
        killed += code == -9
    count["killed"] += killed
    if bench.complete(folder, done=code == 0):
        count["equal after a kill"] += killed
    elif killed:
        count["wrong"] += 1


def start_twice(bench: Bench, rng: random.Random, count: Counter[str]) -> None:
    """Two of the same command at once: one works, the other says who does."""
    folder = bench.fresh()
    first = bench.begin(folder)
    time.sleep(rng.choice((0.0, 0.0, rng.uniform(0.0, 0.8) * bench.seconds)))
    codes = sorted([finish(bench.begin(folder)), finish(first)])
    count["double starts"] += 1
    count["refused"] += codes == [0, 1]
    equal = codes in ([0, 0], [0, 1]) and result(folder) == bench.whole
    count["equal after two"] += equal
    count["wrong"] += not equal
    shutil.rmtree(folder, ignore_errors=True)


def fill_disk(bench: Bench, rng: random.Random, count: Counter[str]) -> None:
    """No file may grow beyond a number of bytes; then there is room again."""
    folder = bench.fresh()
    code = finish(bench.begin(folder, most_bytes=rng.randrange(100, 200_000)))
    count["full disks"] += code != 0
    equal = bench.complete(folder) if code else result(folder) == bench.whole
    count["equal after that"] += equal and code != 0
    count["wrong"] += not equal


TRIALS: tuple[Callable[[Bench, random.Random, Counter[str]], None], ...] = (kill, start_twice, fill_disk)


def main() -> int:
    parser = argparse.ArgumentParser(prog="kills", description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="trainings that are killed; half as many of the others")
    parser.add_argument("--seed", type=int, default=0, help="of the moments: another one for each part of a longer run")
    parser.add_argument("--record", type=Path, help="JSON file to which the counts are added")
    args = parser.parse_args()
    warm_up()
    counts: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory(prefix="kills-") as name:
        work = Path(name)
        os.environ["ANYORDER_DATA"] = str(work / "cache")
        make_data(work / "data")
        lines = commands(work / "data")
        shares = {kind: (-(-args.runs // len(lines)), -(-args.runs // (2 * len(lines)))) for kind in lines}
        for kind, line in lines.items():
            counts[kind] = trials(Bench(line, work, work / "log.txt"), shares[kind], args.seed)
            print(f"{kind}: {dict(counts[kind])}", file=sys.stderr, flush=True)
            if counts[kind]["wrong"]:
                print((work / "log.txt").read_text()[-3000:], file=sys.stderr)
    print(table(counts))
    if args.record is not None:
        _add_to(args.record, counts)
    return int(any(count["wrong"] for count in counts.values()))


def trials(bench: Bench, shares: tuple[int, int], seed: int) -> Counter[str]:
    """All trials of a kind."""
    count: Counter[str] = Counter()
    for _ in range(2):  # the first one makes what is kept for all runs, the second tells the time
        folder, began = bench.fresh(), time.monotonic()
        if finish(bench.begin(folder)) != 0:
            raise SystemExit(f"{' '.join(bench.line)} fails by itself:\n{bench.log.read_text()[-2000:]}")
        bench.seconds, bench.whole = time.monotonic() - began, result(folder)
        shutil.rmtree(folder)
    rng = random.Random(f"{seed} {bench.line[1]}")
    for trial, number in zip(TRIALS, (shares[0], shares[1], shares[1]), strict=True):
        for _ in range(number):
            trial(bench, rng, count)
    return count


def _add_to(path: Path, counts: dict[str, Counter[str]]) -> None:
    known = json.loads(path.read_text()) if path.exists() else {}
    total = {kind: Counter(known.get(kind, {})) + count for kind, count in counts.items()}
    path.write_text(json.dumps({**known, **total}, indent=1) + "\n")
    print(f"\nsum of all runs in {path}:\n{table({kind: Counter(count) for kind, count in {**known, **total}.items()})}")


def table(counts: dict[str, Counter[str]]) -> str:
    """Markdown: a line per kind, and the sum."""
    total: Counter[str] = sum(counts.values(), Counter())
    names = (*COLUMNS, "wrong")
    rows = [f"| {kind} | " + " | ".join(str(count[name]) for name in names) + " |" for kind, count in counts.items()]
    rows.append("| all | " + " | ".join(str(total[name]) for name in names) + " |")
    return "\n".join([f"| training | {' | '.join(names)} |", "|---|" + "---:|" * len(names), *rows])


if __name__ == "__main__":
    sys.exit(main())
