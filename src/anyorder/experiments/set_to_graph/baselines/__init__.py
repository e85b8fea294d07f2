"""The baselines of the set-to-graph table."""
