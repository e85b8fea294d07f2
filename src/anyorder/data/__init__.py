"""Datasets: where they come from, how they are read, generated and checked."""
