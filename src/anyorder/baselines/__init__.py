"""Models of other papers, for comparison."""
