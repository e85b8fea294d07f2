"""Work in a process of its own, which may run out of memory or time without harm."""

from __future__ import annotations

import multiprocessing
import resource
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Generic, Literal, TypeVar

import torch

from anyorder.ops.allocation import reserved_memory

Argument = TypeVar("Argument")
Result = TypeVar("Result")
Status = Literal["ok", "out of memory", "out of time", "failed"]


@dataclass(frozen=True)
class ProcessOutcome(Generic[Result]):
    """What a process did: all results if it is ``ok``, those before it stopped otherwise."""

    status: Status
    results: tuple[Result, ...]
    message: str = ""


def isolated(
    work: Callable[[Argument], Iterator[Result]],
    argument: Argument,
    *,
    memory_limit: float | None = None,
    time_limit: float | None = None,
    threads: int | None = None,
) -> ProcessOutcome[Result]:
    """Run a generator in a new process and collect what it yields.

    Args:
        work: a function of a module, so that the new process finds it.
        memory_limit: GB (2^30 bytes) that it may take, besides what the interpreter and the libraries take.
        time_limit: seconds, the start of the process included.
        threads: number of torch's threads; default: as many as here.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    threads = torch.get_num_threads() if threads is None else threads
    process = context.Process(target=_child, args=(theirs, work, argument, memory_limit, threads), daemon=True)
    process.start()
    theirs.close()
    try:
        return _collect(process, ours, None if time_limit is None else time.monotonic() + time_limit)
    finally:
        process.kill()
        process.join()
        process.close()
        ours.close()


def _collect(process: Any, connection: Connection, deadline: float | None) -> ProcessOutcome[Any]:
    results: list[Any] = []
    while True:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        if not connection.poll(left):
            return ProcessOutcome("out of time", tuple(results))
        try:
            kind, content = connection.recv()
        except (EOFError, ConnectionResetError):
            process.join()
            return _died(process.exitcode, results)
        if kind != "result":
            return ProcessOutcome(kind, tuple(results), content)
        results.append(content)


def _died(code: int | None, results: list[Any]) -> ProcessOutcome[Any]:
    """Without a word: the system, or a library that could not allocate, ended it."""
    if code in (-signal.SIGKILL, -signal.SIGABRT):
        return ProcessOutcome("out of memory", tuple(results), f"ended by {signal.Signals(-code).name}")
    return ProcessOutcome("failed", tuple(results), f"the process ended with code {code}")


def _child(
    connection: Connection, work: Callable[[Any], Iterator[Any]], argument: Any, limit: float | None, threads: int
) -> None:
    torch.set_num_threads(threads)
    if limit is not None:
        most = reserved_memory() + int(limit * 2**30)
        resource.setrlimit(resource.RLIMIT_DATA, (most, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    try:
        for result in work(argument):
            connection.send(("result", result))
        connection.send(("ok", ""))
    except (MemoryError, RuntimeError, OSError) as error:
        short = str(error).strip().split("\n")[-1] or type(error).__name__
        connection.send(("out of memory", short) if _lacked_memory(error) else ("failed", traceback.format_exc()))
    except Exception:
        connection.send(("failed", traceback.format_exc()))


def _lacked_memory(error: BaseException) -> bool:
    words = ("allocate memory", "not enough memory", "out of memory", "bad_alloc")
    return isinstance(error, MemoryError) or any(word in str(error).lower() for word in words)
