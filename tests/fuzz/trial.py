"""One changed file before one reader, and what came of it."""

from __future__ import annotations

import random
import resource
import shutil
import signal
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from anyorder.errors import InputError
from fuzz.reader import Reader

SLOW = 5.0  # seconds of the processor's time
HOPELESS = 20.0
OUTCOMES = ("accepted", "ours", "foreign", "slow")


class Hangs(BaseException):
    """A reader that does not come back."""


@dataclass
class Tally:
    """Outcomes of a reader, and what the foreign and slow ones were: the number of the trial and the reason."""

    counts: Counter[str] = field(default_factory=Counter)
    wrapped: Counter[str] = field(default_factory=Counter)
    found: list[tuple[int, str]] = field(default_factory=list)


def run_trial(reader: Reader, number: int, folder: Path, tally: Tally) -> None:
    """Change one file of a reader as ``number`` says and read; everything random follows from the name and the number."""
    rng = random.Random(f"{reader.name} {number}")
    name = rng.choice(sorted(reader.files))
    changed = reader.mutate(reader.files[name], rng)
    (folder / name).write_bytes(changed)
    began = time.process_time()
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            outcome, reason = _outcome(reader, folder)
        loud = [warning for warning in said if not issubclass(warning.category, (DeprecationWarning, FutureWarning))]
        if loud and outcome != "foreign":
            outcome, reason = "foreign", f"warning: {loud[0].message}"
    finally:
        (folder / name).write_bytes(reader.files[name])
        shutil.rmtree(folder / "out", ignore_errors=True)
    if time.process_time() - began > SLOW:
        outcome, reason = "slow", f"{time.process_time() - began:.1f} s: {reason}"
    tally.counts[outcome] += 1
    if outcome == "ours" and reason:
        tally.wrapped[reason] += 1
    if outcome in ("foreign", "slow"):
        tally.found.append((number, reason))


def _outcome(reader: Reader, folder: Path) -> tuple[str, str]:
    signal.setitimer(signal.ITIMER_PROF, HOPELESS)
    try:
        reader.read(folder)
    except Hangs:
        return "slow", "does not come back"
    except InputError as error:
        return _judged(reader, folder, error)
    except OSError as error:
        known = error.errno is not None or isinstance(error, FileNotFoundError)
        return ("ours", "") if known else ("foreign", _where(error))
    except Exception as error:
        return "foreign", _where(error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "accepted", ""


def _judged(reader: Reader, folder: Path, error: InputError) -> tuple[str, str]:
    """Ours, if the message names the file and nobody had to run out of memory first."""
    causes = []
    cause = error.__cause__
    while cause is not None:
        causes.append(cause)
        cause = cause.__cause__
    if any(isinstance(each, MemoryError) or "allocate memory" in str(each) for each in causes):
        return "foreign", f"memory: {_where(error)}"
    if reader.names_file and not any(name in str(error) for name in (str(folder), *reader.files)):
        return "foreign", f"does not name the file: {_where(error)}"
    if len(str(error)) > 2000:
        return "foreign", f"a message of {len(str(error))} characters: {_where(error)[:300]}"
    foreign = [type(each).__name__ for each in causes if type(each) not in (InputError, ValueError, TypeError)]
    return "ours", foreign[0] if foreign else ""


def _where(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {str(error)[:300]} ({Path(last.filename).name}, line {last.lineno})"


def fill(reader: Reader, folder: Path) -> Path:
    """The whole files of a reader, which it must take."""
    case = folder / "case"
    shutil.rmtree(case, ignore_errors=True)
    case.mkdir(parents=True)
    for name, content in reader.files.items():
        (case / name).write_bytes(content)
    reader.read(case)
    shutil.rmtree(case / "out", ignore_errors=True)
    return case


def guard(gigabytes: float) -> None:
    """Bound the memory of this process, and ring when a reader hangs."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise Hangs

    signal.signal(signal.SIGPROF, ring)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + int(gigabytes * 2**30),) * 2)
