"""Importing the science starts none of the heavy libraries, and never Django."""

from __future__ import annotations

import subprocess
import sys

HEAVY = (
    "amfm_decompy",
    "ctranslate2",
    "django",
    "faster_whisper",
    "matplotlib",
    "numba",
    "onnxruntime",
    "pandas",
    "parselmouth",
    "pyworld",
    "scipy",
    "soundfile",
    "torch",
)
PACKAGES = (
    "common",
    *(
        f"speech.{name}"
        for name in ("audio", "conversion", "encoders", "features", "model_files", "pitch", "predictors")
    ),
    *("speech.recognizers", "speech.vocoders"),
    *(
        f"evaluation.{name}"
        for name in ("metrics", "figures", "formats", "protocols", "objective_results", "objective_results.results")
    ),
    *("evaluation.attackers", "evaluation.attackers.training", "evaluation.recognizer_training", "evaluation.cli"),
)
# Networks and their features are written in torch; what uses them imports them when it is called.
IN_TORCH = (
    *("speech.encoders.networks", "speech.features.log_mel", "speech.features.whisper_layers"),
    *("speech.conversion.content_decoder", "speech.conversion.f0_regressor", "speech.vocoders.hifigan"),
    *("speech.conversion.joint_generator", "speech.conversion.source_filter", "speech.vocoders.harmonic_source"),
    "speech.conversion.world_decoder",
    *(f"evaluation.attackers.training.{name}" for name in ("epochs", "features", "heads")),
    *("speech.recognizers.phone_network", "evaluation.recognizer_training.training"),
)

IMPORT_ALL = f"""
import importlib, pkgutil, sys
for package in {PACKAGES}:
    path = importlib.import_module(package).__path__
    names = [name for _, name, _ in pkgutil.iter_modules(path, package + ".") if name not in {IN_TORCH}]
    assert names, package
    for name in names:
        importlib.import_module(name)
import evaluation.notebook
print(*sorted(sys.modules))
"""


def test_the_science_imports_nothing_heavy():
    command = [sys.executable, "-c", IMPORT_ALL]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    for name in ("metrics.pitch", "figures.histogram", "formats.results", "protocols.recipes", "cli.score"):
        assert f"evaluation.{name}" in loaded
    assert [name for name in loaded if name in HEAVY] == []
