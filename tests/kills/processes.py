"""Commands in processes of their own that share what is imported: a start takes a fraction of a second."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path


def warm_up() -> None:
    """Import what commands need, and start no thread."""
    import lightning.pytorch
    import torch

    import anyorder.cli
    import anyorder.experiments
    import anyorder.training.fit

    assert anyorder and lightning and torch


def start(line: Sequence[str], log: Path, *, most_bytes: int | None = None) -> int:
    """Run a command of anyorder; with ``most_bytes`` no file of it may grow beyond that, as on a full disk."""
    sys.stdout.flush()
    process = os.fork()
    if process:
        return process
    code = 70
    try:
        with log.open("a") as out:
            os.dup2(out.fileno(), 1)
            os.dup2(out.fileno(), 2)
        if most_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, resource.RLIM_INFINITY))
        from anyorder.cli import main

        code = main(list(line))
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def finish(process: int, seconds: float = 600.0) -> int:
    """Wait for a process; its exit code, or minus the signal that ended it."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    raise TimeoutError(f"process {process} did not end in {seconds:.0f} s")


def kill_after(process: int, seconds: float) -> int:
    """Let a process run for some time and kill it; its exit code."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(process, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
