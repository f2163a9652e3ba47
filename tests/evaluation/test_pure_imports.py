"""Importing the science starts none of the heavy libraries, and never Django."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("django", "matplotlib", "numba", "pandas", "parselmouth", "pyworld", "scipy", "torch")

IMPORT_ALL = """
import importlib, pkgutil, sys
for package in ("evaluation.metrics", "evaluation.figures"):
    path = importlib.import_module(package).__path__
    names = [name for _, name, _ in pkgutil.iter_modules(path, package + ".")]
    assert names, package
    for name in names:
        importlib.import_module(name)
print(*sorted(sys.modules))
"""


def test_metrics_and_figures_import_nothing_heavy():
    command = [sys.executable, "-c", IMPORT_ALL]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert "evaluation.metrics.pitch" in loaded
    assert "evaluation.figures.histogram" in loaded
    assert [name for name in loaded if name in HEAVY] == []
