"""Whether a file looks like tuples or hyperedges to predict."""

from __future__ import annotations

from collections.abc import Sequence

from anyorder.peek import FileLook

_OTHERS = ("source", "src", "edge_index", "features")


def reason(seen: FileLook, options: Sequence[str] = ()) -> str:
    """Why a file is taken for tuples that belong together; nothing where it is not."""
    labelled = "--labels" in options or "--label" in options
    if seen.form == "json":
        plain = "incidences" in seen.names and not seen.column("label", "class")
        return "a HIF file without classes of nodes" if plain and not labelled else ""
    if labelled or any("smiles" in name.casefold() for name in seen.names) or seen.column(*_OTHERS):
        return ""
    if seen.form == "table":
        return f"a table of tuples, with the columns {', '.join(map(repr, seen.names[:6]))}"
    sizes = {len(line) for line in seen.lines}
    return f"hyperedges of {min(sizes)} to {max(sizes)} nodes, one per line" if sizes - {2} and seen.form == "lines" else ""
