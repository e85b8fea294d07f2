"""Writing files in one step, see ``anyorder.files``."""

from anyorder.files import read_json, remove_unfinished, replacing, write_bytes, write_json

__all__ = ["read_json", "remove_unfinished", "replacing", "write_bytes", "write_json"]
