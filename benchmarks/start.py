"""Heavy libraries that the start of `manage.py` and of the web process imports, each in a fresh process."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from benchmarks._measuring import ROOT, Figure, report

HEAVY = ("torch", "pandas", "matplotlib", "pyworld")
PROGRAMS = {
    "manage.py": "import manage; import sys; sys.argv = ['manage.py', 'check']; manage.main()",
    "the web process": "import portal.config.wsgi; from django.urls import get_resolver; get_resolver().url_patterns",
}


def main() -> int:
    return report(*(measure_start(what, program) for what, program in PROGRAMS.items()))


def measure_start(what: str, program: str) -> Figure:
    """Return how many of the heavy libraries a process holds after its start."""
    code = f"{program}\nimport sys\nprint('HELD', *sorted({set(HEAVY)!r} & set(sys.modules)))"
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"DJANGO_SETTINGS_MODULE": "tests.settings", "PORTAL_DATA_DIR": folder}
        output = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, env=environment, check=True, capture_output=True, text=True
        ).stdout
    [held] = [line.split()[1:] for line in output.splitlines() if line.startswith("HELD")]
    if held:
        print(f"{what} imports {', '.join(held)}")
    return Figure(f"Start of {what}: imports of {', '.join(HEAVY)}", len(held), 0)


if __name__ == "__main__":
    sys.exit(main())
