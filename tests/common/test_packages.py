"""What is missing is told in one way."""

from common import packages
from common.packages import describe_missing, missing_packages


def test_sentence_names_the_missing_package_and_the_command():
    assert missing_packages("Toy", "no_such", "numpy") == (
        "Toy needs the package no-such, which is not installed here. "
        "Install it with “.venv/bin/python -m pip install no_such”."
    )


def test_parts_of_the_portal_are_installed_from_their_pins():
    assert describe_missing("Toy", "torch", "safetensors") == (
        "Toy needs the packages torch and safetensors, which are not installed here. "
        "Install them with “.venv/bin/python -m pip install -r requirements/torch.txt”."
    )
    assert describe_missing("Toy", "pyworld").endswith("-r requirements/world.txt”; it needs a C++ compiler.")


def test_without_the_pins_packages_are_installed_by_their_names(monkeypatch, tmp_path):
    monkeypatch.setattr(packages, "PINS", tmp_path / "requirements")
    assert describe_missing("Toy", "pyworld").endswith("“python -m pip install pyworld”; it needs a C++ compiler.")
    assert "pip install faster-whisper hibari-tts”" in describe_missing("Toy", "faster_whisper", "hibari")
