"""``vp verify`` as a team uses it: what it prints, what it writes, how it ends, how light it starts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from portal.client.main import main
from tests.evaluation.commands import Answer
from tests.portal.intake.packing import expect, flac, pack_tar, pack_zip, tone, wav

ROOT = Path(__file__).resolve().parents[3]
ORIGINALS = {f"u{number}": tone(0.5 + number / 10, seed=number) for number in range(12)}
SPOKEN = {name: tone(0.5 + number / 10, seed=100 + number) for number, name in enumerate(ORIGINALS)}
SETS = {"dev": ("u0", "u1", "u2"), "test": tuple(f"u{number}" for number in range(3, 12))}
WHOLE = {f"wav/{name}.wav": wav(samples) for name, samples in SPOKEN.items()}
FAULTY = (
    WHOLE
    | {f"wav/u{number}.wav": wav(np.zeros(8000, np.int16)) for number in range(3, 11)}
    | {"wav/u0.wav": wav(ORIGINALS["u0"]), "wav/u1.wav": wav(np.pad(SPOKEN["u1"], (0, 1100))), "wav/x.wav": b"x"}
)


@pytest.fixture
def vp(capsys):
    def run(*arguments):
        capsys.readouterr()
        code = main([str(each) for each in arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return Answer(code, captured.out, captured.err)

    return run


@pytest.fixture
def expected(tmp_path):
    path = tmp_path / "autumn.json"
    path.write_text(expect(ORIGINALS, SETS).to_json())
    return path


def test_sound_archive_ends_with_0(vp, expected, tmp_path):
    answer = vp("verify", pack_zip(tmp_path / "T1.zip", WHOLE.items()), "--expected", expected)
    assert answer.code == 0
    assert answer.out.splitlines() == [
        "T1.zip for autumn",
        "12 files: 12 of 12 utterances in data sets, 0 documents",
        "",
        "Found 0 errors, 0 warnings and 0 notes. The submission would be accepted.",
    ]


def test_faulty_archive_ends_with_1_and_names_each_cause_once(vp, expected, tmp_path):
    answer = vp("verify", pack_tar(tmp_path / "T1.tgz", FAULTY.items()), "--expected", expected)
    assert answer.code == 1
    headings = [line for line in answer.out.splitlines() if line.startswith("  ") and not line.startswith("   ")]
    assert headings == [
        "  warning: No utterance of this name",
        "  error: The original itself, not anonymised",
        "  warning: Longer than the original",
        "  error: Silent (8)",
    ]
    assert answer.out.count("→ Make this utterance again and listen to it.") == 1
    assert "… and 3 more; --csv and --json list all." in answer.out
    assert answer.out.rstrip().endswith(
        "Found 9 errors, 2 warnings and 0 notes. The submission would be refused: fix the errors and check again."
    )


def test_empty_files_are_told_and_folder_without_files_is_refused_as_its_archive_is(vp, expected, tmp_path):
    empty = {"wav/u3.wav": b"", "hypotheses/dev.txt": b"", "results-1/ASV-a-b/scores": b""}
    answer = vp("verify", pack_zip(tmp_path / "T1.zip", (WHOLE | empty).items()), "--expected", expected)
    assert "12 of 12 utterances in data sets (1 came with an error), 2 documents" in answer.out
    assert "wav/u3.wav: expected a WAV or FLAC file, found a file of 0 bytes." in answer.out
    assert answer.out.count("The file is empty") == 2
    for name in ("hypotheses/dev.txt", "results-1/ASV-a-b/scores"):
        assert f"{name}: expected a file with content, found a file of 0 bytes." in answer.out
    (tmp_path / "T2").mkdir()
    refused = [
        vp("verify", one, "--expected", expected) for one in (tmp_path / "T2", pack_zip(tmp_path / "T3.zip", ()))
    ]
    assert ["found an archive without files" in one.out for one in refused] == [True, True]
    assert [one.code for one in refused] == [1, 1]


@pytest.mark.parametrize(
    ("archive", "expectation", "sentence"),
    [
        ("nowhere.zip", "autumn.json", "nowhere.zip: expected an archive or a folder, found nothing there."),
        ("T1.zip", "demo", "demo: expected a file, found a folder. Name the JSON file from the page of the edition; "),
        ("T1.zip", "other.json", "other.json: expected JSON of the format “voiceprivacy-expected-submission”"),
    ],
)
def test_what_cannot_run_ends_with_2_and_one_sentence(
    vp, expected, tmp_path, monkeypatch, archive, expectation, sentence
):
    monkeypatch.chdir(tmp_path)
    pack_zip(tmp_path / "T1.zip", [("u0.wav", flac(SPOKEN["u0"]))])
    Path("other.json").write_text("{}")
    Path("demo").mkdir()
    answer = vp("verify", archive, "--expected", expectation)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert answer.err.startswith(sentence)
