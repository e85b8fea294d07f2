"""Datasets of others: what there is, where it comes from, downloads and checks."""
