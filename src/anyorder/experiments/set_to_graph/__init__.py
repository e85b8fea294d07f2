"""Set to graph: Delaunay and jets (Table 3), and people's own sets."""
