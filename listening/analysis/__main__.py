"""``python -m listening.analysis``: what listeners said, from the shell, without the portal."""

from __future__ import annotations

import sys

from listening.analysis.cli import main

if __name__ == "__main__":
    sys.exit(main())
