"""Synthetic chains (Table 1)."""
