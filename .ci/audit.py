"""Looks every pinned package up in the public list of known vulnerabilities, where that can be reached.

Use: audit.py PIP_AUDIT FILE…, with the program pip-audit and files of pins. It ends with 1 where a pinned version has a
known vulnerability, and with 0 and a sentence where nothing could be looked up: no network is no finding.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

NOT_REACHED = "Known vulnerabilities were not looked up: their list cannot be reached from here."
# Pins are complete: nothing has to be resolved or installed.
OPTIONS = ("--no-deps", "--disable-pip", "--format", "json", "--progress-spinner", "off", "--timeout", "10")
PATIENCE_S = 300


def judge_report(report: dict[str, Any]) -> tuple[int, list[str]]:
    """The exit code and the lines to print for what pip-audit says of each package."""
    packages = {one["name"]: one for one in report["dependencies"]}
    known = [one for one in packages.values() if "skip_reason" not in one]
    if not known:
        return 0, [NOT_REACHED]
    lines = [
        f"{one['name']} {one['version']}: {found['id']}, fixed in {' or '.join(found['fix_versions']) or 'no version'}"
        for one in known
        for found in one["vulns"]
    ]
    code = int(bool(lines))
    lines.append(f"{len(known)} of {len(packages)} pinned packages looked up, {len(lines)} known vulnerabilities.")
    return code, lines


def read_report(program: str, files: list[str]) -> dict[str, Any]:
    """What pip-audit says of the pins; nothing of any package where it does not run or reaches no list."""
    command = [program, *OPTIONS, *(word for file in files for word in ("--requirement", file))]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)  # noqa: S603
        report: dict[str, Any] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return {"dependencies": []}
    return report


def main(program: str, *files: str) -> int:
    code, lines = judge_report(read_report(program, list(files)))
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
