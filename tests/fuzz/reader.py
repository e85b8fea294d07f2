"""What a reader is, to the fuzzer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzz.mutators import Mutator


@dataclass(frozen=True)
class Reader:
    """A name, whole files in a folder, how each is changed, and what reads them."""

    name: str
    files: dict[str, bytes]
    mutate: Mutator
    read: Callable[[Path], Any]
    names_file: bool = True
