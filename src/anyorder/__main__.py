"""``python -m anyorder``."""

import sys

from anyorder.cli import script

sys.exit(script())
