"""What was measured of the methods: read, shown and documented as the benchmark wrote it."""

import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from django.conf import settings

from anonymization.cli.listing import method_as_dict
from anonymization.methods.contract import PseudoSpeaker
from anonymization.methods.measured import find_measured, reaches_voice, read_measurements
from anonymization.methods.registry import get_method, methods
from benchmarks import _comparison as comparison
from benchmarks._comparison import SLOTS, TARGET_SPEECH, document_recipes, document_rows, keep, plan
from benchmarks._speech import Speech, Utterance
from common.rounding import fixed
from portal.systems.anonymization.charts import list_measured


def test_documentation_has_the_numbers_that_were_measured():
    page = Path(settings.BASE_DIR, "docs", "methods.md").read_text()
    found = read_measurements()
    for line in document_rows(found):
        assert line in page, line
    for told in (found.date, found.speech, found.acceptance_speech, found.trained, *found.recognizers, *found.encoders):
        assert told in page, told


def test_documentation_and_list_have_the_parts_of_each_recipe():
    page = Path(settings.BASE_DIR, "docs", "methods.md").read_text()
    lines = document_recipes(methods())
    assert "\n".join(lines) in page
    recipes = [method for method in methods() if getattr(method, "pipeline", ())]
    assert len(lines) == len(recipes) + 2
    for method in recipes:
        told = method_as_dict(method)
        is_as_published = method.name.startswith(("mcadams", "pitch-shift"))
        assert told["fidelity"] == ("published" if is_as_published else "lite")
        assert [part["slot"] for part in told["pipeline"]] == list(SLOTS)
        assert told["measured"]["version"] == method.version


def test_every_built_in_method_was_measured_in_its_version():
    unmeasured = [method.name for method in methods() if find_measured(method) is None]
    assert unmeasured == []


def test_page_shows_a_method_beside_the_original_speech():
    table = list_measured(get_method("t04"))["table"]
    rows = [[cell.text for cell in row.cells] for row in table.rows]
    found = find_measured(get_method("t04"))
    assert [column.heading for column in table.columns] == ["Measure", "Original", "Copies by HiFi-GAN", "This method"]
    words = [fixed(100 * found.word_errors[name], 1) for name in ("moonshine-tiny", "whisper-base")]
    assert [row[3] for row in rows[:2]] == words
    assert rows[2][3] == fixed(100 * found.ignorant["wespeaker-resnet34"], 1)


def test_page_says_what_a_method_falls_short_of():
    assert list_measured(get_method("t04"))["about"].startswith("LibriSpeech")
    about = list_measured(get_method("b1a"))["about"]
    assert about.startswith(
        "Not intelligible: more than 1.5 times the word errors of copies by HiFi-GAN, by the first "
    )
    assert "Voice not reached" not in about


def test_entry_is_replaced_and_those_of_other_speech_go(tmp_path):
    file = tmp_path / "measured.toml"
    about = {
        "date": "2026-01-01",
        "speech": "one",
        "trained": "t",
        "recognizers": ["r"],
        "encoders": ["e"],
        "original": {"word_errors": {"r": 0.1}, "ignorant": {"e": 0.0}},
    }
    numbers = {"version": "1", "word_errors": {"r": 0.25}, "ignorant": {"e": 0.5}}
    keep(file, about, "b", numbers)
    keep(file, about, "a", numbers)
    keep(file, about, "b", {**numbers, "version": "2"})
    text = file.read_text()
    assert text.index("[methods.a]") < text.index("[methods.b]")
    assert text.count('version = "2"') == 1
    more = {key: value for key, value in about.items() if key not in {"speech", "original"}}
    keep(file, {**more, "acceptance_speech": "much"}, "a", {"version": "1", "nearer_than_own": 0.5})
    keep(file, {**more, "acceptance_speech": "much"}, "b", {"version": "2", "nearer_than_own": 0.75})
    assert tomllib.loads(file.read_text())["methods"]["a"] == {**numbers, "nearer_than_own": 0.5}
    keep(file, {**more, "acceptance_speech": "more"}, "b", {"version": "2", "nearer_than_own": 0.625})
    kept = tomllib.loads(file.read_text())
    assert (kept["speech"], kept["acceptance_speech"]) == ("one", "more")
    assert kept["original"] == about["original"]
    assert kept["methods"] == {"a": numbers, "b": {**numbers, "version": "2", "nearer_than_own": 0.625}}
    keep(file, {**about, "speech": "other"}, "c", numbers)
    assert "[methods.a]" not in file.read_text()


@pytest.mark.parametrize(
    ("own", "other", "reached"), [(0.6, 0.6, True), (0.6, 0.5, False), (0.5, 0.6, False), (None, None, None)]
)
def test_voice_is_reached_where_most_outputs_are_nearer_to_it(own, other, reached):
    one = replace(read_measurements().original, nearer_than_own=own, nearer_than_other=other)
    assert reaches_voice(one) is reached
    shortfalls = read_measurements().find_shortfalls(one)
    assert shortfalls == (("voice not reached",) if reached is False else ())


def test_outputs_are_compared_with_the_given_voice_the_own_and_that_of_another_trial(monkeypatch):
    """Of four speakers two have one voice; the second sounds as before, the third like another's voice."""
    axes = np.eye(8)
    sound = np.zeros(16_000, np.int16)
    sides = [Utterance(f"{name}{number}", name, "F", "librispeech", sound) for name in "abcd" for number in (1, 2)]
    given = {"a": axes[4], "b": axes[5], "c": axes[6], "d": axes[4]}

    judges = SimpleNamespace(
        sides={"enrolment": sides[::2], "trial": sides[1::2]},
        original={"enrolment": {comparison.ENCODERS[0]: axes[:4]}},
    )
    monkeypatch.setattr(comparison, "_find_given", lambda _method, _judges, speaker, _voice: given[speaker])
    voices = {name: PseudoSpeaker(name, {}) for name in given}
    tried = np.stack([axes[4], axes[1] + 0.1 * axes[5], axes[4] + 0.5 * axes[6], axes[4]])
    found = comparison.measure_acceptance(None, judges, voices, tried)
    # Pairs are a and c, b and d: in the second the voices of c and a are compared, in the other those of b and d.
    assert found == {"nearer_than_own": 0.75, "nearer_than_other": 0.75}
    given["d"] = given["b"]
    assert comparison.measure_acceptance(None, judges, voices, tried)["nearer_than_other"] == 0.5


@pytest.mark.skipif(not TARGET_SPEECH.is_dir(), reason=f"the speech of {TARGET_SPEECH} is not here")
def test_speakers_get_targets_of_equal_number_and_others_for_enrolment():
    sound = np.zeros(16_000, np.int16)
    speech = Speech([Utterance(name, name, "F", "librispeech", sound) for name in "abcd"])
    voices = {role: plan(get_method("knn-vc"), speech, role) for role in ("enrolment", "trial")}
    for of_role in voices.values():
        assert sorted(voice.target for voice in of_role.values()) == ["19", "19", "26", "26"]
    assert all(voices["enrolment"][name].target != voices["trial"][name].target for name in "abcd")
