"""``run`` and ``voices`` with a method whose voices are those of target speakers."""

import csv
from pathlib import Path

import pytest
import soundfile

from anonymization.cli.voice_assignment import read_pool
from anonymization.conformance import make_vowel
from tests.anonymization.cli.shell import RATE_HZ, write_speech
from tests.evaluation.commands import refusal

pytestmark = pytest.mark.usefixtures("target_spectrum")
METHOD = ("--method", "filtered")
GENDERS = {"a": "f", "b": "m", "x": "f", "y": "m", "z": "m"}


def say_genders(folder, *speakers):
    text = "".join(f"{speaker} {GENDERS[speaker]}\n" for speaker in speakers)
    (folder / "spk2gender").write_text(text)
    return folder


@pytest.fixture
def source(tmp_path):
    return say_genders(write_speech(tmp_path / "in", "a/a-1.wav", "a/a-2.wav", "b/b-1.wav"), "a", "b")


@pytest.fixture
def targets(tmp_path):
    folder = tmp_path / "targets"
    for number, name in enumerate(("x", "y", "z")):
        (folder / name).mkdir(parents=True)
        vowel = make_vowel(RATE_HZ, 1.0)
        soundfile.write(folder / name / f"{name}-1.wav", vowel[: vowel.size - 1000 * number], RATE_HZ)
    return say_genders(folder, "x", "y", "z")


def read_csv(path):
    with Path(path).open(newline="") as file:
        return list(csv.reader(file))


def test_targets_can_be_planned_without_anonymising(shell, source, targets, tmp_path):
    asked = (source, *METHOD, "--seed", 4, "--targets", targets)
    answer = shell("voices", *asked)
    assert answer.code == 0
    assert shell("voices", *asked, "--out", tmp_path / "targets.csv").code == 0
    assert (tmp_path / "targets.csv").read_text() == answer.out
    assert shell("anonymize", *asked[1:3], source, tmp_path / "out", *asked[3:]).code == 0
    assert (tmp_path / "out" / "targets.csv").read_text() == answer.out
    rows = shell("voices", *asked, "--json").json["assignments"]
    assert [row["target"] for row in rows] == [
        dict(read_csv(tmp_path / "targets.csv"))[f"{name}/{name}-1"] for name in "ab"
    ]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            (*METHOD, "--seed", "1"),
            "--targets: expected a folder of speech of target speakers for filtered; found none",
        ),
        (
            ("--method", "mcadams-2022", "--seed", "1", "--targets", "gone"),
            "found mcadams-2022, which draws its voices",
        ),
        ((*METHOD, "--seed", "1", "--targets", "gone"), "gone: expected a folder of WAV or FLAC files"),
    ],
)
def test_what_was_said_about_targets_is_refused_in_words(shell, source, tmp_path, arguments, sentence):
    assert sentence in refusal(shell("anonymize", source, tmp_path / "out", *arguments))
    assert not (tmp_path / "out").exists()


def test_genders_are_asked_for_where_they_count(shell, source, targets, tmp_path):
    (source / "spk2gender").unlink()
    asked = (
        "anonymize",
        *METHOD,
        source,
        tmp_path / "out",
        "--seed",
        1,
        "--targets",
        targets,
        "--target-selection",
        "same-gender",
    )
    assert "needs the gender of every speaker; found none of a. State it (spk2gender)" in refusal(shell(*asked))
    (tmp_path / "genders").write_text("a f\nb m\n")
    assert shell(*asked, "--genders", tmp_path / "genders").code == 0


def test_pool_is_in_the_order_of_names(targets):
    pool = read_pool(targets)
    assert [(target.name, target.gender, len(target.recordings)) for target in pool.targets] == [
        ("x", "f", 1),
        ("y", "m", 1),
        ("z", "m", 1),
    ]
