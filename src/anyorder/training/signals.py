"""Signals that ask a process to end: a training saves its state first, everything else ends at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_HEEDED = (signal.SIGTERM, signal.SIGINT)


class Stopped(SystemExit):
    """A signal has ended the work; the exit code is 128 plus its number, as a shell has it (SIGTERM 143, SIGINT 130)."""

    def __init__(self, number: int, how_to_go_on: str = "") -> None:
        super().__init__(128 + number)
        self.number = number
        self.how_to_go_on = how_to_go_on

    def __str__(self) -> str:
        name = {signal.SIGTERM: "terminated", signal.SIGINT: "interrupted"}.get(signal.Signals(self.number), "stopped")
        return f"{name}; {self.how_to_go_on}" if self.how_to_go_on else name


class _Wish:
    """Whether steps are under way that should come to an end before the process does, and the signal that asks for it."""

    def __init__(self) -> None:
        self.training = False
        self.number: int | None = None

    def heed(self, number: int, frame: Any) -> None:
        if self.training and self.number is None:
            self.number = number
            return
        self.training, self.number = False, None
        raise Stopped(number)


_wish = _Wish()


@contextmanager
def heeding_signals() -> Iterator[None]:
    """Within the block, SIGTERM and SIGINT raise ``Stopped``, or ask a training to save its state and raise it then."""
    before = install()
    try:
        yield
    finally:
        _wish.training, _wish.number = False, None
        for number, handler in before.items():
            signal.signal(number, handler)


def install() -> dict[int, Any]:
    """Take the signals, but for those that are ignored, and return who had them; another library may have taken them."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    taken = [number for number in _HEEDED if signal.getsignal(number) not in (None, signal.SIG_IGN)]
    return {number: signal.signal(number, _wish.heed) for number in taken}


def begin_steps() -> None:
    """From now on, a signal waits for ``asked`` to be looked at; a second one does not."""
    install()
    _wish.training = True


def end_steps() -> None:
    """From now on, a signal ends the work at once."""
    _wish.training = False


def asked() -> int | None:
    """The number of the signal that asks to stop after this step."""
    return _wish.number
