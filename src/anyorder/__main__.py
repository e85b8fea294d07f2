"""``python -m anyorder``."""

import sys

from anyorder.cli import main

sys.exit(main())
