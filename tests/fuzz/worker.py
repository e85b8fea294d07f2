"""A process that runs trials in turns of some hundred and says after each what came of them; it may crash."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from fuzz.readers import all_readers
from fuzz.trial import Tally, fill, guard, run_trial

LONGEST_TURN = 0.1
"""Seconds of the processor: slow readers do not keep the others waiting."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--first", type=int, required=True, help="number of the first trial of each reader")
    parser.add_argument("--turn", type=int, default=500, help="trials of a reader before the next one's turn")
    parser.add_argument("--place", type=Path, required=True, help="file that names the trial under way")
    args = parser.parse_args()
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None, prefix="fuzz-") as name:
        folder = Path(name)
        readers = all_readers(folder)
        guard(4.0)
        numbers = dict.fromkeys((reader.name for reader in readers), args.first)
        ends = time.monotonic() + args.seconds
        with args.place.open("w") as place:
            while time.monotonic() < ends:
                for reader in readers:
                    tally, until = Tally(), time.process_time() + LONGEST_TURN
                    case = fill(reader, folder)
                    for _ in range(args.turn):
                        if time.process_time() > until or time.monotonic() > ends:
                            break
                        place.seek(0)
                        place.write(f"{reader.name}|{numbers[reader.name]:>12}")
                        place.flush()
                        run_trial(reader, numbers[reader.name], case, tally)
                        numbers[reader.name] += 1
                    said = {"counts": tally.counts, "wrapped": tally.wrapped, "found": tally.found}
                    print(json.dumps({"reader": reader.name, **said}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
