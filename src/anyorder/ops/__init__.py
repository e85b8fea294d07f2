"""Operators that torch knows: segment attention, gathers and dropout, each a plain reference and its fast versions."""
