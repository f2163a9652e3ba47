"""Bytes of script that an evaluator is sent in one session, uncompressed, for each form of a trial."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from benchmarks._measuring import ROOT, Figure, report

STATIC = ROOT / "static"
# The modules of a trial page beside those that all have.
FORMS = {
    "one recording": ("rating",),
    "changed recordings, one answer": ("switching", "rating"),
    "changed recordings, sliders": ("switching", "sliders"),
    "board": ("board",),
    "transcription": ("transcription",),
}
IN_PAGE = re.compile(r"""static ['"]([^'"]+\.js)['"]""")
IMPORTED = re.compile(r"""(?:from|import)\s*\(?\s*["']([^"']+\.js)["']""")


def main() -> int:
    pages = (ROOT / "templates" / "listening" / "sessions").glob("*.html")
    scripts = {STATIC / name for page in pages for name in IN_PAGE.findall(page.read_text(encoding="utf-8"))}
    assert STATIC / "listening" / "trials.js" in scripts
    sizes = {
        form: sum_bytes({*scripts, *(STATIC / "listening" / f"{name}.js" for name in names)})
        for form, names in FORMS.items()
    }
    return report(
        *(Figure(f"Script sent to an evaluator, {form}", size / 1000, 60, "kB") for form, size in sizes.items())
    )


def sum_bytes(scripts: set[Path]) -> int:
    """Return the bytes of scripts and of all that they import."""
    seen: set[Path] = set()
    while scripts:
        path = scripts.pop()
        seen.add(path)
        found = {(path.parent / name).resolve() for name in IMPORTED.findall(path.read_text(encoding="utf-8"))}
        scripts |= found - seen
    return sum(path.stat().st_size for path in seen)


if __name__ == "__main__":
    sys.exit(main())
