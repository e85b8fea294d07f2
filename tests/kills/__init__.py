"""Trainings that are killed at any moment, started twice at once, or run out of disk: their results are the same."""
