"""Training: runs as values, one Lightning module, checkpoints, records and tables."""
