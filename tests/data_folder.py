"""Where this machine keeps downloaded data: ``ANYORDER_DATA``, or ``shared/data`` beside the repository."""

from __future__ import annotations

import os
from pathlib import Path

DATA = Path(os.environ.get("ANYORDER_DATA") or Path(__file__).parents[2] / "shared" / "data")
