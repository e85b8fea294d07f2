"""Scripts in processes of their own, forked from one that has imported everything.

Starting Python, torch and Lightning takes five seconds each time; tests of signals, exit codes and locks need none of it.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    ["lightning.pytorch", "torchmetrics", "sklearn.metrics", "anyorder.cli", "anyorder.training.fit"]
)


def run_script(script: str, arguments: Sequence[object], timeout: float = 600) -> CompletedProcess[str]:
    """What ``python -c script arguments`` ends with, but for the time to start."""
    return run_together(script, [arguments], timeout)[0]


def run_together(script: str, arguments: Sequence[Sequence[object]], timeout: float = 600) -> list[CompletedProcess[str]]:
    """The same for several processes at a time, each with its own arguments."""
    with tempfile.TemporaryDirectory() as folder:
        calls = []
        for number, given in enumerate(arguments):
            words, said = [*map(str, given)], [Path(folder) / f"{name}-{number}" for name in ("out", "err")]
            process = _CONTEXT.Process(target=_run, args=(script, words, *map(str, said)))
            process.start()
            calls.append((process, words, said))
        until, ended = time.monotonic() + timeout, []
        for process, words, said in calls:
            process.join(max(0.0, until - time.monotonic()))
            if process.exitcode is None:
                for other, *_ in calls:
                    other.kill()
                raise TimeoutError(f"a script was not done after {timeout:g} seconds")
            ended.append(CompletedProcess([script, *words], process.exitcode, *(path.read_text() for path in said)))
        return ended


def _run(script: str, words: list[str], out: str, err: str) -> None:
    for number, path in ((1, out), (2, err)):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT)
        os.dup2(handle, number)
    sys.argv = ["-c", *words]
    try:
        exec(compile(script, "<script>", "exec"), {"__name__": "__main__"})
    except SystemExit:
        raise
    except BaseException:
        traceback.print_exc()
        sys.exit(1)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
