"""Node classification on hypergraphs, and people's own hypergraphs."""
