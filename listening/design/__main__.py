"""``python -m listening.design``: a design and its balance certificate from the shell, without the portal."""

from __future__ import annotations

import sys

from listening.design.commands import main

if __name__ == "__main__":
    sys.exit(main())
