"""What pytest does not collect."""

from importlib.util import find_spec

# Modules of the Triton kernel are imported on a machine with Triton only; helpers of tests that register names only once.
TRITON = ["src/anyorder/ops/segment_triton.py", "src/anyorder/ops/segment_blocks.py"]
collect_ignore = ["tests/small_runs.py", *([] if find_spec("triton") else TRITON)]
