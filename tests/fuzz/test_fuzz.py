"""A few seconds of what ``make fuzz`` does for as long as one likes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from anyorder.errors import InputError
from fuzz.__main__ import table
from fuzz.reader import Reader
from fuzz.readers import all_readers
from fuzz.trial import Tally, fill, run_trial

TRIALS = 25
FORGIVING = {"lock", "part of a download", "molecule store, built again"}
"""Readers that take a damaged file for none: a lock is nobody's then, a download begins anew, a shard is built again."""


def test_every_reader_takes_a_changed_file_or_says_what_is_wrong_with_it(tmp_path):
    readers = all_readers(tmp_path)
    assert len({reader.name for reader in readers}) == len(readers) >= 50
    for reader in readers:
        tally, case = Tally(), fill(reader, tmp_path)
        for number in range(TRIALS):
            run_trial(reader, number, case, tally)
        assert not tally.found, (reader.name, tally.found[0])
        assert sum(tally.counts.values()) == TRIALS, reader.name
        assert tally.counts["ours"] or reader.name in FORGIVING, reader.name


def says(error: Exception | None) -> Reader:
    def read(folder: Path) -> None:
        if error is not None and (folder / "x").read_bytes() != b"whole":
            raise error

    return Reader("example", {"x": b"whole"}, lambda raw, rng: b"changed", read)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (None, "accepted"),
        (InputError("case/x: no"), "ours"),
        (FileNotFoundError("x"), "ours"),
        (InputError("something is wrong"), "foreign"),
        (ValueError("case/x: no"), "foreign"),
        (RecursionError(), "foreign"),
        (KeyError("x"), "foreign"),
    ],
)
def test_the_judge_tells_ours_from_foreign(error, outcome, tmp_path):
    tally, reader = Tally(), says(error)
    run_trial(reader, 0, fill(reader, tmp_path), tally)
    assert tally.counts == {outcome: 1}


def test_the_table_has_a_line_per_reader_and_a_sum():
    lines = table({"a": Counter(ours=1000, accepted=1), "b": Counter(foreign=2)}).splitlines()
    assert lines[2:] == [
        "| a | 1,001 | 1 | 1,000 | 0 | 0 | 0 |",
        "| b | 2 | 0 | 0 | 2 | 0 | 0 |",
        "| all | 1,003 | 1 | 1,000 | 2 | 0 | 0 |",
    ]
