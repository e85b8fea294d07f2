"""What somebody probably meant: the hint of an error message about an unknown name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def closest(name: str, known: Iterable[str], *, cutoff: float = 0.5) -> str | None:
    """The known name that is most like this one, whatever its case; None where none is.

    >>> closest("Leraning_rate", ["learning_rate", "seed"]), closest("epochs", ["seed"])
    ('learning_rate', None)
    """
    folded: dict[str, str] = {}
    for each in known:
        folded.setdefault(each.casefold(), each)
    found = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=cutoff)
    return folded[found[0]] if found else None


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of an error message: the known name that was probably meant, or all of them.

    >>> nearest("leraning_rate", ["learning_rate", "seed"])
    "; did you mean 'learning_rate'?"
    >>> nearest("epochs", ["seed", "clip"])
    "; expected one of ['clip', 'seed']"
    """
    names = sorted(known)
    close = closest(name, names)
    return f"; expected one of {names}" if close is None else f"; did you mean {close!r}?"
