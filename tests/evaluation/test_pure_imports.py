"""Importing the science starts none of the heavy libraries, and never Django."""

from __future__ import annotations

import subprocess
import sys

HEAVY = (
    "ctranslate2", "django", "faster_whisper", "matplotlib", "numba", "onnxruntime", "pandas", "parselmouth", "pyworld",
    "scipy", "soundfile", "torch",
)  # fmt: skip
PACKAGES = (
    "metrics", "figures", "formats", "protocols", "commands", "objective", "attackers", "recognizers", "predictors",
    "weights",
)  # fmt: skip

IMPORT_ALL = f"""
import importlib, pkgutil, sys
for package in {tuple(f"evaluation.{name}" for name in PACKAGES)}:
    path = importlib.import_module(package).__path__
    names = [name for _, name, _ in pkgutil.iter_modules(path, package + ".")]
    assert names, package
    for name in names:
        importlib.import_module(name)
import evaluation.notebook, evaluation.__main__
print(*sorted(sys.modules))
"""


def test_the_science_imports_nothing_heavy():
    command = [sys.executable, "-c", IMPORT_ALL]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    for name in ("metrics.pitch", "figures.histogram", "formats.results", "protocols.recipes", "commands.score"):
        assert f"evaluation.{name}" in loaded
    assert [name for name in loaded if name in HEAVY] == []
