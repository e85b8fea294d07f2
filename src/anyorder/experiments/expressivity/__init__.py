"""What an order can tell apart and count: BREC and its kind, colour refinement, substructures."""
