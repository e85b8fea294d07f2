"""Permutation-equivariant Transformers for data of any order."""
