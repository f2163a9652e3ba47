"""``python -m evaluation``: the numbers of the challenge from the shell, without the portal."""

from __future__ import annotations

import sys

from evaluation.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
