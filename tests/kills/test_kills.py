"""One kill, double start and full disk of every kind; ``make kill`` does as many as one likes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_every_kind_of_training_survives():
    paths = os.pathsep.join([str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    ended = subprocess.run([sys.executable, "-m", "kills", "--runs", "5"], env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.rstrip().endswith("| 0 |") and "| all | " in ended.stdout
