"""``python -m portal.client``: the same as ``vp``."""

from __future__ import annotations

import sys

from portal.client.main import main

if __name__ == "__main__":
    sys.exit(main())
