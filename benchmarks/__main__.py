"""Run every benchmark, each in a process of its own. The exit status is 1 where a budget is not met."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
LONG = {"demo": "the demo: up to 5 minutes", "test": "make test of a fresh clone: needs the network and an hour"}


def main() -> int:
    """Return 1 where a benchmark misses its budget, else 0."""
    names = sorted(script.stem for script in FOLDER.glob("[!_]*.py") if script.stem not in LONG)
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)} (default: all)")
    for name, what in LONG.items():
        parser.add_argument(f"--{name}", action="append_const", dest="long", const=name, help=f"measure {what}")
    arguments = parser.parse_args()
    if unknown := sorted({*arguments.names} - {*names}):
        parser.error(f"expected {', '.join(names)}; found {', '.join(unknown)}")
    long = arguments.long or []
    missed = []
    for name in arguments.names + long or names:
        process = subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], cwd=FOLDER.parent, check=False)
        if process.returncode:
            missed.append(name)
    print(f"Not met: {', '.join(missed)}." if missed else "Every budget is met.")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
