"""Which of several processes this is, and what happens when another one ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


class PeerLost(RuntimeError):
    """Another process of this run has ended."""


def is_main() -> bool:
    """Whether this is the process that writes and speaks: the first of ``--devices``, ``torchrun`` or ``srun``."""
    return not any(int(os.environ.get(name, "0")) for name in ("RANK", "SLURM_PROCID", "LOCAL_RANK", "NODE_RANK"))


@contextmanager
def naming_lost_peers() -> Iterator[None]:
    """Turn the error of a broken connection between processes into ``PeerLost``."""
    from torch.distributed import DistError

    try:
        yield
    except RuntimeError as error:
        # Gloo has no type for this: it names the source file of its transport.
        if not isinstance(error, DistError) and "gloo/transport/" not in str(error):
            raise
        raise PeerLost("another process of this run has ended, so this one ends, too") from error
