"""Which sets of nodes are hyperedges: hypergraphs with edges of many sizes, held-out hyperedges, negatives, scores."""
