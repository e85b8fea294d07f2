"""Scripts in processes of their own, forked from one that has imported everything.

Starting Python, torch and Lightning takes five seconds each time; tests of signals, exit codes and locks need none of it.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
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
    words = [*map(str, arguments)]
    with tempfile.TemporaryDirectory() as folder:
        said = [Path(folder) / name for name in ("out", "err")]
        process = _CONTEXT.Process(target=_run, args=(script, words, *map(str, said)))
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            raise TimeoutError(f"a script was not done after {timeout:g} seconds")
        return CompletedProcess([script, *words], process.exitcode, *(path.read_text() for path in said))


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
