"""Whether a file or folder looks like graphs."""

from __future__ import annotations

from collections.abc import Sequence

from anyorder.experiments.graphs.readers.names import FIRST, SECOND
from anyorder.peek import FileLook

_FOLDERS = {"_A.txt": "a TU folder", "out1_graph_edges.txt": "a Geom-GCN folder", "edges.": "a folder with a table of edges"}


def reason(seen: FileLook, options: Sequence[str] = ()) -> str:
    """Why a file or folder is taken for graphs; nothing where it is not."""
    if seen.form == "folder":
        return next((text for part, text in _FOLDERS.items() if any(part in name for name in seen.names)), "")
    if seen.form in ("xml", "gml"):
        return f"a graph by its ending {seen.path.suffix}"
    if seen.form == "json":
        linked = seen.column("links", "edges", "adjacency")
        return f"node-link JSON, with {linked!r}" if linked and "incidences" not in seen.names else ""
    if "edge_index" in seen.names:
        return "the arrays of PyG graphs, with 'edge_index'"
    first, second = seen.column(*FIRST), seen.column(*SECOND)
    if first and second:
        return f"a table of edges, from {first!r} to {second!r}"
    if seen.form == "lines":
        return _pairs(seen)
    two = seen.form == "table" and len(seen.names) == 2 and not any("smiles" in name.casefold() for name in seen.names)
    return f"a list of edges between {seen.names[0]!r} and {seen.names[1]!r}" if two else ""


def _pairs(seen: FileLook) -> str:
    """Lines of two nodes, perhaps with a weight."""
    return "a list of edges, two nodes per line" if {len(line) for line in seen.lines} == {2} else ""
