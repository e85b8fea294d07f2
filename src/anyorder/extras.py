"""Optional dependencies, imported where they are used."""

from __future__ import annotations

import importlib
from types import ModuleType


def require(module: str, extra: str) -> ModuleType:
    """Import an optional dependency, or say which extra brings it.

    >>> require("math", "train").__name__
    'math'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and not (module + ".").startswith(error.name + "."):
            raise
        raise ModuleNotFoundError(
            f"{module} is needed here and is not installed: pip install 'anyorder[{extra}]'", name=error.name
        ) from error
