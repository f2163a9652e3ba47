"""What was measured of the methods: read, shown and documented as the benchmark wrote it."""

import itertools
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from django.conf import settings

from anonymization.cli.listing import method_as_dict
from anonymization.methods.contract import PseudoSpeaker
from anonymization.methods.measured import find_measured, reaches_voice, read_measurements, wilson_interval
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


def list_rows(name, heading):
    """The names of the methods in the first column of a table of the documentation."""
    text = Path(settings.BASE_DIR, "docs", name).read_text().split(heading, 1)[1]
    lines = itertools.takewhile(lambda line: line.startswith("|"), text.lstrip("\n").splitlines()[2:])
    return [name for line in lines for name in re.findall("`([a-z0-9-]+)`", line.split("|")[1])]


@pytest.mark.parametrize(
    ("page", "table"),
    [
        ("methods.md", "pseudo-speakers), its options (fixed for a run), and what was measured."),
        (
            "anonymizers.md",
            "and pipes (reported as errors) and hidden files (reported as notes) are left out.",
        ),
    ],
)
def test_documentation_lists_the_methods_that_there_are(page, table):
    assert sorted(list_rows(page, table)) == sorted(method.name for method in methods())


@pytest.mark.parametrize(
    ("share", "count", "low", "high"),
    [
        (0.1, 10, 0.017876, 0.404150),  # R 4.3: prop.test(1, 10, correct = FALSE)
        (0.0, 10, 0.0, 0.277533),
        (0.5, 100, 0.403832, 0.596168),
    ],
)
def test_interval_of_a_share_is_wilsons(share, count, low, high):
    assert wilson_interval(share, count) == pytest.approx((low, high), abs=2e-5)


def test_page_shows_a_method_beside_the_original_speech():
    table = list_measured(get_method("t04"))["table"]
    rows = [[cell.text for cell in row.cells] for row in table.rows]
    found = find_measured(get_method("t04"))
    assert [column.heading for column in table.columns] == ["Measure", "Original", "Copies by HiFi-GAN", "This method"]
    words = [fixed(100 * found.word_errors[name], 1) for name in ("moonshine-tiny", "whisper-base")]
    assert [row[3] for row in rows[:2]] == words
    assert [cell.interval for cell in table.rows[0].cells[1:]] == ["7.2 to 15.2", "6.5 to 14.2", "3.4 to 9.5"]
    assert [cell.interval for cell in table.rows[2].cells[1:]] == ["", "", ""]
    assert rows[2][3] == fixed(100 * found.ignorant["wespeaker-resnet34"], 1)


def test_page_says_what_a_method_falls_short_of():
    assert list_measured(get_method("t04"))["about"].startswith("LibriSpeech")
    about = list_measured(get_method("b1a"))["about"]
    assert about.startswith(
        "Not intelligible: more than 1.5 times the word errors of copies by HiFi-GAN, by the first "
    )
    assert "Voice not reached" not in about


ABOUT = {
    "date": "2026-01-01",
    "speech": "one",
    "trained": "t",
    "recognizers": ["r"],
    "encoders": ["e"],
    "original": {"word_errors": {"r": 0.1}, "ignorant": {"e": 0.0}},
    "copied": {"word_errors": {"r": 0.2}},
}
NUMBERS = {"version": "1", "word_errors": {"r": 0.25}, "ignorant": {"e": 0.5}}


@pytest.fixture
def file(tmp_path):
    """Two methods, measured together."""
    file = tmp_path / "measured.toml"
    for name in ("b", "a"):
        keep(file, ABOUT, name, NUMBERS, is_whole=True)
    return file


def read(file):
    return tomllib.loads(file.read_text())


def test_a_method_that_is_measured_alone_changes_its_own_row_only(file):
    before = read(file)
    other = {"copied": {"word_errors": {"r": 0.9}}, "original": {"word_errors": {"r": 0.9}, "rho_f0": 1.0}}
    keep(file, ABOUT | other, "b", {**NUMBERS, "version": "2"})
    after = read(file)
    assert list(after["methods"]) == ["a", "b"]
    assert after["methods"] == before["methods"] | {"b": {**NUMBERS, "version": "2"}}
    assert after["copied"] == before["copied"]
    assert after["original"] == before["original"] | {"rho_f0": 1.0}  # what was not measured before


def test_all_methods_measured_together_change_what_they_are_compared_to(file):
    keep(file, ABOUT | {"copied": {"word_errors": {"r": 0.9}}}, "b", NUMBERS, is_whole=True)
    assert read(file)["copied"] == {"word_errors": {"r": 0.9}}
    keep(file, ABOUT | {"speech": "other"}, "c", NUMBERS, is_whole=True)
    assert list(read(file)["methods"]) == ["c"]


def test_a_method_is_not_measured_alone_on_other_speech(file):
    before = file.read_text()
    with pytest.raises(ValueError, match=r"speech: expected “one”, on which .* measured, found “x”"):
        keep(file, ABOUT | {"speech": "x"}, "b", NUMBERS)
    assert file.read_text() == before


def test_entries_of_acceptance_go_where_that_speech_is_another(file):
    more = {key: value for key, value in ABOUT.items() if key not in {"speech", "original", "copied"}}
    for name in ("a", "b"):
        keep(file, {**more, "acceptance_speech": "much"}, name, {"version": "1", "nearer_than_own": 0.5})
    assert read(file)["methods"]["a"] == {**NUMBERS, "nearer_than_own": 0.5}
    keep(file, {**more, "acceptance_speech": "more"}, "b", {"version": "1", "nearer_than_own": 0.625}, is_whole=True)
    kept = read(file)
    assert (kept["speech"], kept["acceptance_speech"], kept["copied"]) == ("one", "more", ABOUT["copied"])
    assert kept["methods"] == {"a": NUMBERS, "b": {**NUMBERS, "nearer_than_own": 0.625}}


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
