"""The pass over the audio of a draft."""

import dataclasses
from pathlib import Path

import pytest

from common.problems import Severity
from portal.intake.corpora.draft import DraftUtterance
from portal.intake.corpora.reading import check_duplicates, check_utterance_audio
from speech.audio.files import AudioFacts, inspect_audio
from tests.portal.corpora import corpora

UTTERANCE = DraftUtterance("a_0", "a", "HE SAID SO", Path("a/a_0.flac"), None, "a/a_0.flac")
GOOD = AudioFacts(16000, 1, 32000, "PCM_16", "FLAC", "0" * 64, 0.5, 0.1, False)


def codes(utterance=UTTERANCE, *, resample=False, **changes):
    facts = dataclasses.replace(GOOD, **changes)
    problems = check_utterance_audio(utterance, facts, resample=resample)
    return [(problem.code, problem.severity) for problem in problems]


@pytest.mark.parametrize(
    ("changes", "code", "severity"),
    [
        ({"rate_hz": 44100, "samples": 88200}, "wrong-rate", Severity.ERROR),
        ({"channels": 2}, "not-mono", Severity.ERROR),
        ({"samples": 639}, "too-short", Severity.ERROR),
        ({"samples": 640}, "short", Severity.WARNING),
        ({"samples": 4799}, "short", Severity.WARNING),
        ({"samples": 60 * 16000 + 1}, "long", Severity.WARNING),
        ({"samples": 600 * 16000 + 1}, "too-long", Severity.ERROR),
        ({"peak": 0.0, "rms": 0.0, "is_silent": True}, "silent", Severity.ERROR),
    ],
)
def test_unfit_audio_is_reported(changes, code, severity):
    assert codes(**changes) == [(code, severity)]


@pytest.mark.parametrize(("stated", "expected"), [(2.02, 0), (1.98, 0), (2.03, 1), (1.97, 1)])
def test_a_stated_duration_may_differ_by_20_ms(stated, expected):
    utterance = dataclasses.replace(UTTERANCE, duration_s=stated)
    assert len(codes(utterance)) == expected


def test_files_of_the_same_content_are_one_warning(tmp_path):
    names = ("a", "b", "c")
    for name, seed in zip(names, (1, 2, 1), strict=True):
        corpora.write_audio(tmp_path / f"{name}.flac", seed=seed)
    digests = {name: inspect_audio(tmp_path / f"{name}.flac").sha256 for name in names}
    (problem,) = check_duplicates(digests)
    assert (problem.code, problem.file, problem.severity) == ("same-audio", "a", Severity.WARNING)
    assert problem.found == "the same file for a, c"
