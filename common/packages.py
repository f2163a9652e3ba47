"""Python packages that not every machine has, and the one sentence that tells which are missing and what to do."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

# Of which file of pins in the portal's folder an importable package is part.
_PARTS = {
    "torch": "torch",
    "safetensors": "torch",
    "pyworld": "world",
    "faster_whisper": "whisper",
    "moonshine_voice": "moonshine",
    "hibari": "kokoro",
    "sentry_sdk": "sentry",
}
# The names in package registries that are not those of the import, for a program that was installed without the pins.
_PROJECTS = {"hibari": "hibari-tts", "parselmouth": "praat-parselmouth"}
PINS = Path(__file__).resolve().parent.parent / "requirements"
_NEEDED = {
    "world": "; it needs a C++ compiler",
    "torchaudio": "; it loads beside the CUDA build of PyTorch only",
}


def python_command() -> str:
    """Python as the documentation names it: a checkout has an environment of its own."""
    return ".venv/bin/python" if PINS.is_dir() else "python"


def vp_command() -> str:
    """Return how ``vp`` is started, likewise."""
    return ".venv/bin/vp" if PINS.is_dir() else "vp"


def missing_packages(what: str, *packages: str) -> str:
    """Return why something cannot run here, as one sentence that says what to do; empty where all packages are
    installed.

    Args:
        what: needs them, as a sentence begins.
        packages: names by which they are imported; none is imported.

    Returns:
        Such as “Toy needs the package torch, which is not installed here. Install it with …”.
    """
    missing = [package for package in packages if find_spec(package) is None]
    return describe_missing(what, *missing) if missing else ""


def describe_missing(what: str, *missing: str) -> str:
    """Return the sentence for packages that are known to be missing, or that cannot be loaded."""
    parts = dict.fromkeys(_PARTS[package] for package in missing if package in _PARTS)
    if PINS.is_dir():
        wanted = [f"-r requirements/{part}.txt" for part in parts] + [one for one in missing if one not in _PARTS]
    else:
        wanted = [_PROJECTS.get(package, package.replace("_", "-")) for package in missing]
    names = " and ".join(package.replace("_", "-") for package in missing)
    plural, verb, them = ("s", "are", "them") if len(missing) > 1 else ("", "is", "it")
    needed = "".join(_NEEDED.get(part, "") for part in (*parts, *missing))
    command = f"{python_command()} -m pip install {' '.join(wanted)}"
    sentence = f"{what} needs the package{plural} {names}, which {verb} not installed here."
    return f"{sentence} Install {them} with “{command}”{needed}."
