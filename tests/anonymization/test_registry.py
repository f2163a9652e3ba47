"""The list of methods, and what every method of it must do."""

import numpy as np
import pytest

from anonymization.methods.errors import MethodError
from anonymization.methods.mcadams import McAdamsParameters, mcadams
from anonymization.methods.pseudo_speakers import PseudoSpeaker
from anonymization.methods.registry import get_method, methods

NAMES = {"seed": 1, "role": "trial", "split": "dev", "speaker": "a", "utterance": "a-1"}

each_method = pytest.mark.parametrize("method", methods(), ids=lambda method: method.name)


def test_methods_are_listed_by_name():
    assert [method.name for method in methods()] == ["mcadams-2022"]
    assert all(get_method(method.name) is method for method in methods())


def test_unknown_method_is_refused_with_the_known_names():
    with pytest.raises(MethodError, match=r'no anonymisation method "b2". Known methods: mcadams'):
        get_method("b2")


def test_b2_is_mcadams_with_the_drawn_alpha(vowels):
    b2 = get_method("mcadams-2022")
    voice = b2.pseudo_speaker(**NAMES)
    assert set(voice.parameters) == {"alpha"}
    expected = mcadams(vowels, 16_000, McAdamsParameters(voice.parameters["alpha"]))
    assert np.array_equal(b2.anonymize(vowels, 16_000, voice), expected)


@each_method
def test_method_describes_itself(method):
    assert all((method.name, method.title, method.version, method.reference, method.parameters))
    assert all(parameter.low < parameter.high for parameter in method.parameters)


@each_method
def test_pseudo_speaker_lies_in_range(method):
    voice = method.pseudo_speaker(**NAMES)
    for parameter in method.parameters:
        assert parameter.low <= voice.parameters[parameter.name] < parameter.high


@each_method
def test_output_is_repeatable_and_not_the_input(method, vowels):
    voice = method.pseudo_speaker(**NAMES)
    output = method.anonymize(vowels, 16_000, voice)
    assert np.array_equal(output, method.anonymize(vowels, 16_000, voice, threads=2))
    assert output.shape == vowels.shape
    assert not np.array_equal(output, vowels)


@each_method
def test_enrolment_and_trial_sound_different(method, vowels):
    trial, enrolment = (
        method.anonymize(vowels, 16_000, method.pseudo_speaker(**{**NAMES, "role": role}))
        for role in ("trial", "enrolment")
    )
    assert not np.array_equal(trial, enrolment)


@each_method
def test_foreign_pseudo_speaker_is_refused(method, vowels):
    with pytest.raises(MethodError, match=f"{method.name} takes the parameters .* has warmth"):
        method.anonymize(vowels, 16_000, PseudoSpeaker("00", {"warmth": 1.0}))
