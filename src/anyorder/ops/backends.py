"""Which version of an operator runs: the plain reference, compiled loops, matrix products or a GPU kernel."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import util
from threading import Lock, Thread, local
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import Parameter

BACKENDS = ("auto", "reference", "numba", "products", "triton")
COMPILING = ("background", "wait", "never")
INSTALLED = {name: util.find_spec(name) is not None for name in ("numba", "triton")}
Compiling = Literal["background", "wait", "never"]
LARGE = 2**21
"""Numbers of queries from which it pays to have Numba."""
MANY = 1000
"""Calls with small inputs after which loops are compiled for them, too."""
_hinted: list[bool] = []


def _setting(name: str, options: tuple[str, ...]) -> str:
    value = os.environ.get(name, options[0])
    if value not in options:
        raise ValueError(f"{name} must be one of {', '.join(options)}, got {value!r}")
    return value


@dataclass
class Choice:
    """What this process was asked for."""

    backend: str = field(default_factory=lambda: _setting("ANYORDER_BACKEND", BACKENDS))
    """``auto``: operators choose."""
    compiling: str = field(default_factory=lambda: _setting("ANYORDER_COMPILING", COMPILING))


choice = Choice()
here = local()
"""Of this thread: whether its attention is ``plain``."""


@contextmanager
def use_backend(name: str) -> Iterator[None]:
    """Force how operators run: ``reference``, ``numba`` or ``products`` (CPU), ``triton`` (GPU), or ``auto``."""
    if name not in BACKENDS:
        raise ValueError(f"backend must be one of {BACKENDS}, got {name!r}")
    before, choice.backend = choice.backend, name
    try:
        yield
    finally:
        choice.backend = before


@contextmanager
def plain_in_this_thread() -> Iterator[None]:
    """Have attention of this thread run the reference; other threads go on as they do."""
    before, here.plain = getattr(here, "plain", False), True
    try:
        yield
    finally:
        here.plain = before


@contextmanager
def use_compiling(how: str) -> Iterator[None]:
    """What to do while loops are not compiled yet.

    ``background``: a thread compiles them and operators without loops run meanwhile. Results change by rounding when the
    loops take over. ``wait``: the first call compiles, so that a seed always gives the same bits. ``never``: do not compile.
    """
    if how not in COMPILING:
        raise ValueError(f"compiling must be one of {COMPILING}, got {how!r}")
    before, choice.compiling = choice.compiling, how
    try:
        yield
    finally:
        choice.compiling = before


def wait_for_loops() -> None:
    """For benchmarks: this process and those that it starts compile what they need before they go on."""
    choice.compiling = os.environ["ANYORDER_COMPILING"] = "wait"


def backend_of(tensor: Tensor) -> str:
    """The fastest version for a tensor's device."""
    if choice.backend != "auto":
        return choice.backend
    if tensor.device.type == "cpu":
        if not INSTALLED["numba"]:
            _hint(tensor)
        return "numba" if INSTALLED["numba"] else "reference"
    return "triton" if tensor.device.type == "cuda" and INSTALLED["triton"] else "reference"


def _hint(tensor: Tensor) -> None:
    """Say once that large inputs are slow without Numba."""
    if _hinted or tensor.numel() < LARGE or torch.compiler.is_compiling():
        return
    _hinted.append(True)
    warnings.warn(
        f"attention over {len(tensor):,} entries runs without compiled loops: pip install 'anyorder[fast]' makes it several "
        "times faster on a CPU",
        stacklevel=2,
    )


def is_watched(*tensors: Tensor) -> bool:
    """Whether somebody looks at operators: a compiler, a tracer, a mode of torch's dispatcher, a profiler, tensors of
    another kind.

    Where nobody does, a function may be called in place of its operator, whose way through the dispatcher takes a tenth of
    a millisecond.
    """
    return (
        torch.compiler.is_compiling()
        or torch._C._len_torch_dispatch_stack() > 0
        or torch._C._get_tracing_state() is not None
        or torch._C._autograd._profiler_enabled()
        or any(type(tensor) not in (Tensor, Parameter) or is_batched(tensor) for tensor in tensors)
    )


is_batched = torch._C._functorch.is_legacy_batchedtensor
"""Whether a tensor is a batch of gradients (``torch.autograd.grad(..., is_grads_batched=True)``)."""


class Compiled:
    """Loops that are compiled once per key, in the background unless a caller must have them.

    Args:
        build: makes the loops of a key for a caller that waits.
        ahead: makes them in a thread; all is compiled when it returns.
    """

    def __init__(self, build: Callable[..., Any], ahead: Callable[..., Any]) -> None:
        self._build, self._ahead = build, ahead
        self._made: dict[Hashable, Any] = {}
        self._started: dict[Hashable, Thread] = {}
        self._asked: Counter[Hashable] = Counter()
        self._lock = Lock()

    def get(self, *key: Any, need: bool = False) -> Any:
        """What ``build(*key)`` returns; None while it is compiled in the background, unless ``need``."""
        if key in self._made:
            made = self._made[key]
            if isinstance(made, Exception):
                raise made
            return made
        if need or choice.compiling == "wait":
            return self._wait(key)
        if choice.compiling == "background" and key not in self._started:
            with self._lock:
                if key not in self._started:
                    work = Thread(target=self._make, args=(self._ahead, key), daemon=True, name="anyorder-compile")
                    self._started[key] = work
                    self._started[key].start()
        return None

    def has(self, *key: Any) -> bool:
        """Whether the loops of a key are there; whoever asks often has them compiled."""
        if key in self._made:
            return not isinstance(self._made[key], Exception)
        self._asked[key] += 1
        if self._asked[key] >= MANY:
            self.get(*key)
        return False

    def _wait(self, key: tuple[Any, ...]) -> Any:
        started = self._started.get(key)
        if started is not None:
            started.join()
        else:
            self._make(self._build, key)
        return self.get(*key)

    def _make(self, build: Callable[..., Any], key: tuple[Any, ...]) -> None:
        try:
            self._made[key] = build(*key)
        except Exception as error:  # shown where the loops are wanted, not in a thread
            self._made[key] = error
