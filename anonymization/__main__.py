"""``python -m anonymization``: the anonymisers from the shell, without the portal."""

from __future__ import annotations

import sys

from anonymization.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
