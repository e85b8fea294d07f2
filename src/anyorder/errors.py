"""What a user can mend: one class for every file, setting or name that is not as it should be."""

from __future__ import annotations

import pickle
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike

__all__ = ["InputError"]

_BUGS = (AssertionError, ImportError, NameError)  # ours or of the installation, whatever the file holds
_LONGEST = 600


class InputError(ValueError):
    """Something that came from outside is not as expected; the message says where, what was expected and what came.

    Every reader raises it for a file that is there and cannot be used. A file that is missing or may not be read stays an
    ``OSError`` of the system. What a file holds may be long: its message is cut.

    >>> raise InputError("points.npz: expected an array (points, 2), got (7,)")
    Traceback (most recent call last):
    anyorder.errors.InputError: points.npz: expected an array (points, 2), got (7,)

    Args:
        message: what was wrong, where, what was expected and what came.
    """

    def __init__(self, message: str = "") -> None:
        cut = f"{message[:_LONGEST]} ... {message[-_LONGEST // 4 :]}" if len(message) > 2 * _LONGEST else message
        super().__init__(cut)


@contextmanager
def reading(path: str | PathLike[str], expected: str = "") -> Iterator[None]:
    """The edge of a reader: whatever a decoder finds wrong becomes an ``InputError`` that names the file.

    >>> with reading("weights.npz", "a whole NPZ file"):
    ...     raise EOFError("no data left")
    Traceback (most recent call last):
    ...
    anyorder.errors.InputError: weights.npz is not a whole NPZ file: no data left
    """
    try:
        yield
    except _BUGS:
        raise
    except OSError as error:
        if error.errno is not None or isinstance(error, FileNotFoundError | FileExistsError):
            raise  # of the system, or in its words
        raise _input_error(path, expected, error) from error
    except InputError as error:
        if str(path) in str(error):
            raise
        raise type(error)(f"{path}: {error}") from error
    except Exception as error:
        raise _input_error(path, expected, error) from error


def _input_error(path: str | PathLike[str], expected: str, error: Exception) -> InputError:
    reason = _reason(error)
    if type(error) in (ValueError, TypeError) and str(path) in reason:
        return InputError(reason)
    return InputError(f"{path} is not {expected}: {reason}" if expected else f"{path}: {reason}")


def _reason(error: Exception) -> str:
    """What an exception says, short and in words where Python has none."""
    if isinstance(error, MemoryError):
        return "it does not fit into memory"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, pickle.UnpicklingError):
        return "it is damaged, or holds more than tensors and plain data, which is not run"
    if isinstance(error, KeyError):
        return f"it lacks {error}"
    text = str(error).strip()
    if type(error) not in (ValueError, TypeError, OSError, EOFError) or not text:
        text = f"{text} ({type(error).__name__})" if text else type(error).__name__
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def printable(text: str) -> str:
    r"""Text for a terminal: what would move the cursor, change colours or reverse the writing is shown as its code.

    >>> printable("\x1b[31mred")
    '\\x1b[31mred'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if char in "\n\t" or not is_control(char) else _code(char) for char in text)


def is_control(char: str) -> bool:
    """Whether a character is a control code, half of a pair, or turns the direction of writing."""
    return (
        unicodedata.category(char) in ("Cc", "Cs")
        or char in "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    )


def _code(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
