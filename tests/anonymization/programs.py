"""Programs of strangers, made for the tests: a script with its description, as a team would hand them in."""

import json
import os
import textwrap

import numpy as np
import pytest

from anonymization.methods.contract import PseudoSpeaker, VoicedUtterance
from anonymization.methods.external.method import load_command
from anonymization.methods.external.sandbox import explain_missing_bubblewrap

# Where bubblewrap is missing these tests are skipped; under CI they fail.
confined = pytest.mark.skipif(
    bool(explain_missing_bubblewrap()) and os.environ.get("CI") != "true", reason=explain_missing_bubblewrap()
)

# What programs of the tests begin with that are called with folders: their arguments, and a way to write speech.
HEAD = """\
import csv, os, shutil, sys, time, wave
from pathlib import Path
source, output, manifest = (Path(each) for each in sys.argv[1:4])

def write(path, samples, rate=16000, channels=1):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels); file.setsampwidth(2); file.setframerate(rate); file.writeframes(samples)

def copy():
    for path in source.iterdir():
        with wave.open(str(path)) as file:
            write(output / path.name, file.readframes(file.getnframes())[::-1], file.getframerate())
"""


def as_toml(values, prefix=""):
    """A description in TOML of nested dictionaries and lists of them."""
    tables = {key: value for key, value in values.items() if isinstance(value, dict)}
    lists = {
        key: value for key, value in values.items() if isinstance(value, list) and value and isinstance(value[0], dict)
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in values.items() if key not in tables and key not in lists]
    lines += [f"[{key}]\n{as_toml(value)}" for key, value in tables.items()]
    lines += [f"[[{key}]]\n{as_toml(each)}" for key, value in lists.items() for each in value]
    return "\n".join(lines)


def describe(place, **changes):
    """A description in its folder, with changes; None removes a key."""
    values = {
        "name": "hush",
        "title": "Hush",
        "version": "1",
        "reference": "A team",
        "command": ["{python}", "program.py", "{input_folder}", "{output_folder}", "{manifest}"],
        "is_deterministic": True,
        **changes,
    }
    path = place / "anonymizer.toml"
    path.write_text(as_toml({key: value for key, value in values.items() if value is not None}))
    return path


def make_command(folder, code, **changes):
    """An external command that runs this Python code, after `HEAD` where it is called with folders."""
    folder.mkdir(exist_ok=True)
    head = HEAD if "{input_folder}" in changes.get("command", "{input_folder}") else ""
    (folder / "program.py").write_text(head + textwrap.dedent(code))
    return load_command(describe(folder, **changes))


def voice(key="5e" * 32, **parameters):
    return PseudoSpeaker(key, parameters)


def noise(n, seed=0):
    return np.random.default_rng(seed).integers(-3000, 3000, n).astype(np.int16)


def items(*lengths):
    return [VoicedUtterance(noise(length, seed), voice()) for seed, length in enumerate(lengths)]
