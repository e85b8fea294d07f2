"""Which of several processes this is."""

from __future__ import annotations

import os


def is_main() -> bool:
    """Whether this is the process that writes and speaks: the first of ``--devices``, ``torchrun`` or ``srun``."""
    return not any(int(os.environ.get(name, "0")) for name in ("RANK", "SLURM_PROCID", "LOCAL_RANK", "NODE_RANK"))
