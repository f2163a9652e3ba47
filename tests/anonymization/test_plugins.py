"""The examples of docs/plugins.md, run as they are written there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from anonymization.conformance import check_method
from anonymization.methods.contract import Method, VoicedUtterance, find_missing_members
from anonymization.methods.external.method import load_command
from anonymization.methods.registry import find_method
from anonymization.methods.voices.pseudo_speakers import plan_voices
from tests.anonymization.programs import confined

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "plugins.md").read_text()
FILES = dict(re.findall(r'^```\w+ title="(\S+)"\n(.*?)^```', PAGE, re.MULTILINE | re.DOTALL))


@pytest.fixture
def examples(tmp_path):
    """The files of the page."""
    for name, code in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(code)
    return tmp_path


def notebook():
    cells = {}
    exec(FILES["notebook.py"], cells)
    return cells


def ring(samples, rate, frequency_hz):
    """What each example does."""
    return np.rint(samples * np.cos(2 * np.pi * frequency_hz * np.arange(samples.size) / rate)).astype(np.int16)


def batch(method, vowels):
    voices = plan_voices(method.parameters, seed=1, role="trial", split="dev", speakers=["a", "b"]).voices
    return [
        VoicedUtterance(vowels, voices["a"]),
        VoicedUtterance(vowels[:5000], voices["b"]),
        VoicedUtterance(vowels[5000:], voices["a"]),
    ]


def check_rings(method, vowels):
    items = batch(method, vowels)
    outputs = method.anonymize_batch(items, 16_000)
    for item, output in zip(items, outputs, strict=True):
        assert np.array_equal(output, ring(item.samples, 16_000, item.pseudo_speaker.parameters["frequency"]))


def test_page_has_the_examples_it_speaks_of():
    assert set(FILES) == {
        *("notebook.py", "pyproject.toml", "ring_voices.py", "check.py"),
        *("ring/anonymizer.toml", "ring/anonymize.py", "stream/anonymizer.toml", "stream/stream.py"),
    }


def test_function_of_a_notebook_is_a_method(vowels):
    cells = notebook()
    method = cells["RING"]
    assert isinstance(method, Method)
    assert not find_missing_members(method)
    assert np.array_equal(cells["anonymised"], ring(cells["speech"], 16_000, cells["voice"].parameters["frequency"]))
    check_rings(method, vowels)
    assert check_method(method, speech=vowels) == []


def installed(examples, target):
    """The package of the page, built and installed by pip without a network."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    command += ["--no-build-isolation", "--no-deps", "--target", str(target), "."]
    answer = subprocess.run(command, cwd=examples, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr


def test_installed_package_is_offered_by_its_entry_point(examples, tmp_path):
    target = tmp_path / "installed"
    installed(examples, target)
    code = """
import numpy as np
from anonymization.conformance import check_method
from anonymization.methods.registry import broken, get_method, methods
method = get_method("ring-voices")
print(methods()[-1] is method, broken(), check_method(method))
"""
    answer = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(target)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (answer.stdout, answer.stderr) == ("True () []\n", "")


@confined
@pytest.mark.parametrize("name", ["ring", "stream"])
def test_command_anonymises_a_batch(name, examples, vowels):
    check_rings(load_command(examples / name / "anonymizer.toml"), vowels)


def test_commands_of_a_folder_are_found_by_name(examples, monkeypatch):
    monkeypatch.setenv("PORTAL_ANONYMIZERS_DIR", str(examples))
    assert find_method("ring-command").title == "Ring modulation by a command"
    assert find_method("ring-stream") == load_command(examples / "stream" / "anonymizer.toml")


def test_table_of_keys_names_each_key_of_a_description():
    code = (ROOT / "anonymization" / "methods" / "external" / "description.py").read_text()
    keys = set(re.findall(r'(?:take|text|one_of|flag|number|texts|tables|table)\("(\w+)"', code))
    table = PAGE.partition("### What the description can say")[2].partition("###")[0]
    assert keys - {"network"} <= set(re.findall(r"\w+", table))
