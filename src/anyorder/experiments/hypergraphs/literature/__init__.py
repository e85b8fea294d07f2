"""Networks on hypergraphs from other people's papers, written from their equations."""
