"""What the contract refuses by itself, whatever the method: each in a sentence."""

import numpy as np
import pytest

from anonymization.methods.contract import MethodError, Option, PseudoSpeaker, validate_samples
from anonymization.methods.method_files import read_methods
from anonymization.methods.registry import get_method
from anonymization.methods.voices.pseudo_speakers import plan_voices

B2 = get_method("mcadams-2022")
SECOND = np.random.default_rng(1).normal(0, 1000, 16_000).astype(np.int16)
VOICE = PseudoSpeaker("k", {"alpha": 0.7})


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({1: 2}, "has no option 1. Its options: level,"),
        ("level=peak", "options as a mapping of names to values; found 'level=peak'"),
        ([], r"options as a mapping of names to values; found \[\]"),
        ({"level": ["peak"]}, "level is one of peak, kept"),
    ],
)
def test_options_of_another_kind_are_refused(options, sentence):
    with pytest.raises(MethodError, match=sentence):
        B2.anonymize(SECOND, 16_000, VOICE, options=options)


@pytest.mark.parametrize("value", ["0.6", True, None])
def test_values_of_a_voice_that_are_no_numbers_are_refused(value):
    with pytest.raises(MethodError, match="alpha of mcadams-2022 is a number; found"):
        B2.anonymize(SECOND, 16_000, PseudoSpeaker("k", {"alpha": value}))


@pytest.mark.parametrize("value", [np.float64(0.5), np.float32(0.5)])
def test_numbers_of_every_kind_make_the_same_voice(value):
    expected = B2.anonymize(SECOND, 16_000, PseudoSpeaker("k", {"alpha": 0.5}))
    assert np.array_equal(B2.anonymize(SECOND, 16_000, PseudoSpeaker("k", {"alpha": value})), expected)


@pytest.mark.parametrize("seed", [1.5, "1", True])
def test_seed_that_is_no_whole_number_is_refused(seed):
    with pytest.raises(MethodError, match="A seed is a whole number; found"):
        plan_voices(B2.parameters, seed=seed, role="trial", split="dev", speakers=["anna"])


@pytest.mark.parametrize(("low_hz", "sentence"), [(8000, "at 8000 to 16000 Hz;"), (16_000, "at 16000 Hz;")])
def test_rates_are_told_as_a_range_or_as_the_one_there_is(low_hz, sentence):
    with pytest.raises(MethodError, match=sentence):
        validate_samples("Echo", SECOND, 44_100, low_hz=low_hz, high_hz=16_000)


HUSH = """
[hush]
title = "Hush"
version = "1"
reference = "A team"
"""
DEPTH = """
[options.depth]
default = 3
meaning = "how deep"
"""


def read_file(folder, text):
    (folder / "methods.toml").write_text(text)
    return read_methods(str(folder / "method.py"))


def test_defaults_of_a_method_stand_in_place_of_those_of_its_options(tmp_path):
    [about] = read_file(tmp_path, HUSH + 'options = ["depth"]\ndefaults = {depth = 5}\n' + DEPTH)
    assert about["options"] == (Option("depth", 5, "how deep"),)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (HUSH.replace("version", "edition"), "hush: expected title, version, reference, found no version."),
        (HUSH + "defaults = {depth = 5}\n" + DEPTH, "hush: defaults: expected names of none, found depth."),
        (HUSH + DEPTH.replace("default = 3", ""), "options: depth: expected name, default, meaning, found no default."),
    ],
)
def test_file_of_methods_that_lacks_something_is_a_sentence(text, sentence, tmp_path):
    with pytest.raises(MethodError) as raised:
        read_file(tmp_path, text)
    assert str(raised.value).startswith(f"{tmp_path}/methods.toml: ")
    assert sentence in str(raised.value)
