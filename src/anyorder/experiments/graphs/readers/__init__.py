"""Readers of the formats that graphs come in, each in a file, all giving a `GraphSet`."""
