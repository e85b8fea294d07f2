"""Whether a file looks like a hypergraph whose nodes have classes."""

from __future__ import annotations

from collections.abc import Sequence

from anyorder.peek import FileLook


def reason(seen: FileLook, options: Sequence[str] = ()) -> str:
    """Why a file is taken for a hypergraph with classes; nothing where it is not."""
    if seen.form == "json" and "incidences" in seen.names:
        word = "--label" if "--label" in options else seen.column("label", "class")
        return f"a HIF file whose nodes have {word!r}" if word else ""
    if "--labels" in options and seen.form in ("lines", "table"):
        return "a list of hyperedges, with --labels beside it"
    return ""
