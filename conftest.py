"""What pytest leaves out where a library is not installed."""

from importlib.util import find_spec

# The modules of the Triton kernel are imported on a machine with Triton only.
TRITON = ["src/anyorder/layers/segment_triton.py", "src/anyorder/layers/segment_blocks.py"]
collect_ignore = [] if find_spec("triton") else TRITON
