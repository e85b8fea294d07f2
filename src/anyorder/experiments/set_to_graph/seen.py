"""Whether a file looks like sets of points."""

from __future__ import annotations

from collections.abc import Sequence

from anyorder.peek import FileLook


def reason(seen: FileLook, options: Sequence[str] = ()) -> str:
    """Why a file is taken for sets; nothing where it is not."""
    if seen.form != "arrays" or "features" not in seen.names:
        return ""
    label = seen.column("edges", "partition")
    return f"the points of sets in 'features', with {label!r}" if label else "the points of sets in 'features'"
