"""k-uniform hyperedge prediction (Table 4), and people's own tuples."""
