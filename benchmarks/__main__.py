"""Runs every benchmark; each prints a ratio to a yardstick measured in the same run, and its budget."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def main() -> int:
    """The number of benchmarks that missed their budget."""
    failed = 0
    for script in sorted(FOLDER.glob("[!_]*.py")):
        print(f"\n{script.stem}\n{'-' * len(script.stem)}", flush=True)
        module = f"benchmarks.{script.stem}"
        failed += subprocess.run([sys.executable, "-m", module], cwd=FOLDER.parent, check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
