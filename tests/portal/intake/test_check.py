"""An archive against what an edition expects: places, names, copies, inheritance, documents, and what is handed on."""

from __future__ import annotations

import os
import time
import unicodedata

import numpy as np
import pytest

from common.child_process import ChildLimits
from common.errors import InputError
from common.problems import Severity
from portal.intake import pdf_files
from portal.intake.archives.limits import LARGEST_SPEECH_BYTES, ArchiveLimits
from portal.intake.check import _in_order
from portal.intake.expectation import ExpectedSubmission, pcm_sha256
from portal.intake.speech import Inspection
from portal.intake.utterances import Placed
from tests.portal.intake.packing import (
    DESCRIPTION,
    RATE,
    RECIPE_2022,
    check,
    expect,
    find_problems,
    flac,
    pack_tar,
    pack_zip,
    pdf_of,
    tone,
    unpack,
    wav,
)

ORIGINALS = {f"u{number}": tone(0.5 + number / 10, seed=number) for number in range(6)}
SPOKEN = {name: tone(0.5 + number / 10, seed=100 + number) for number, name in enumerate(ORIGINALS)}
SETS = {"one": ("u0", "u1", "u2"), "two": ("u2", "u3", "u4", "u5")}


class Kept:
    """A keeper that remembers."""

    def __init__(self):
        self.speech, self.documents = {}, {}

    def keep_speech(self, found):
        for data_set in found.data_sets:
            assert (data_set, found.utterance) not in self.speech
            self.speech[data_set, found.utterance] = found.speech.pcm_sha256, found.path

    def keep_document(self, found):
        self.documents[found.path] = found.content, found.place.read_bytes()


def whole(**changes):
    return {f"wav/{name}.wav": wav(samples) for name, samples in SPOKEN.items()} | changes


def checked(tmp_path, files, *, sets=SETS, keeper=None, inherited=None, beside=None, progress=None, **changes):
    source = pack_zip(tmp_path / "T1.zip", files.items())
    expected = expect(ORIGINALS, sets, **changes)
    return check(
        source, expected, tmp_path / "documents", keeper, inherited=inherited, beside=beside, progress=progress
    )


def test_one_file_serves_every_data_set_that_holds_its_utterance(tmp_path):
    kept = Kept()
    report = checked(tmp_path, whole(), keeper=kept)
    assert report.findings == ()
    assert set(kept.speech) == {(name, utterance) for name, names in SETS.items() for utterance in names}
    assert kept.speech["one", "u2"] == kept.speech["two", "u2"] == (pcm_sha256(SPOKEN["u2"]), "wav/u2.wav")
    assert (report.counts.speech, report.counts.expected, report.counts.received) == (6, 7, 7)


@pytest.mark.parametrize("folder", ["{}_mcadams/wav", "T1/data/{}_anon/wav/speaker"])
def test_folder_of_a_data_set_serves_that_one(tmp_path, folder):
    files = {
        f"{folder.format(data_set)}/{name}.wav": wav(SPOKEN[name] // (2 if data_set == "two" else 1))
        for data_set, names in SETS.items()
        for name in names
    }
    kept = Kept()
    assert checked(tmp_path, files, keeper=kept).findings == ()
    assert kept.speech["one", "u2"][0] != kept.speech["two", "u2"][0]
    assert kept.speech["two", "u2"][1] == f"{folder.format('two')}/u2.wav"


def test_file_in_the_folder_of_one_set_is_missing_in_the_other(tmp_path):
    files = whole()
    files["one_anon/u2.wav"] = files.pop("wav/u2.wav")
    report = checked(tmp_path, files)
    assert [(one.data_set, one.code, one.file) for one in report.findings] == [("two", "missing", "u2.wav")]


def test_joint_folder_serves_the_sets_that_it_joins(tmp_path):
    sets = {"vctk_dev_trials_f": ("u0", "u1", "u2"), "vctk_dev_trials_f_common": ("u3", "u4", "u5")}
    files = {f"vctk_dev_trials_f_all_anon/{name}.wav": wav(samples) for name, samples in SPOKEN.items()}
    assert checked(tmp_path, files, sets=sets).findings == ()


def test_utterance_in_the_folder_of_another_set_is_taken_with_a_warning(tmp_path):
    files = whole()
    files["two_anon/u0.wav"] = files.pop("wav/u0.wav")
    report = checked(tmp_path, files)
    assert find_problems(report) == [("u0", "different-set")]
    assert not report.has_errors


def test_name_that_differs_a_little_is_taken_with_a_warning(tmp_path):
    files = whole()
    files["wav/U0_anon.WAV"] = files.pop("wav/u0.wav")
    report = checked(tmp_path, files)
    assert [(one.code, one.severity) for one in report.findings] == [("different-name", Severity.WARNING)]
    assert report.counts.missing == 0


@pytest.mark.parametrize("order", [1, -1])
def test_copy_is_the_one_whose_length_does_not_fit(tmp_path, order):
    files = dict(sorted(whole(**{"wav/u1.wav": wav(SPOKEN["u4"])}).items())[::order])
    report = checked(tmp_path, files)
    assert find_problems(report) == [("u1", "same-as-other")]
    assert report.faulty == ("u1",)


def test_original_of_another_utterance_is_not_anonymised_either(tmp_path):
    report = checked(tmp_path, whole(**{"wav/u1.wav": flac(ORIGINALS["u4"])}))
    assert find_problems(report) == [("u1", "identical-to-original")]
    assert report.findings[0].found.endswith("of the original of u4")


def test_one_recording_under_two_names_of_the_corpus_is_no_copy(tmp_path):
    expected = expect({"u0": ORIGINALS["u0"], "again": ORIGINALS["u0"], "u1": ORIGINALS["u1"]})
    names = {"u0": "u0", "again": "u0", "u1": "u1"}
    source = pack_zip(tmp_path / "T1.zip", [(f"{name}.wav", wav(SPOKEN[one])) for name, one in names.items()])
    assert check(source, expected, tmp_path / "documents").findings == ()


def test_edition_that_lets_durations_change_keeps_what_others_refuse(tmp_path):
    silence = np.zeros(RATE, np.int16)
    long = np.tile(SPOKEN["u3"], 3)
    files = whole(**{"wav/u1.wav": wav(silence), "wav/u2.wav": wav(silence), "wav/u3.wav": wav(long)})
    found = {}
    for keeps in ("true", "false"):
        report = checked(tmp_path, files, recipe_text=f"keeps_duration = {keeps}\n{RECIPE_2022}")
        found[keeps] = (report.has_errors, report.faulty)
    assert found == {"true": (True, ("u1", "u2", "u3")), "false": (False, ())}


def test_speech_of_faulty_files_is_not_kept(tmp_path):
    kept = Kept()
    files = whole(
        **{"wav/u0.wav": wav(ORIGINALS["u0"]), "wav/u1.wav": b"", "wav/u3.wav": wav(np.tile(SPOKEN["u3"], 3))}
    )
    report = checked(tmp_path, files, keeper=kept)
    assert find_problems(report) == [("u0", "identical-to-original"), ("u1", "empty"), ("u3", "longer")]
    assert {name for _, name in kept.speech} == {"u2", "u4", "u5"}
    assert report.faulty == ("u0", "u1", "u3")


def test_inherited_utterances_are_not_missing_and_need_not_come_again(tmp_path):
    inherited = {"one": frozenset({"u0", "u1"}), "two": frozenset({"u3", "u4", "u5"})}
    report = checked(tmp_path, {"wav/u2.wav": wav(SPOKEN["u2"]), "wav/u3.wav": wav(SPOKEN["u3"])}, inherited=inherited)
    assert report.findings == ()
    assert (report.counts.received, report.counts.inherited, report.counts.missing) == (3, 4, 0)


def test_whole_data_set_that_is_missing_is_one_finding(tmp_path):
    report = checked(tmp_path, {f"{name}.wav": wav(SPOKEN[name]) for name in ("u3", "u4", "u5")})
    found = [(one.data_set, one.code, one.count) for one in report.findings]
    assert found == [("one", "missing-data-set", 3), ("two", "missing", 1)]


def test_speech_that_need_not_come_is_missed_by_a_warning(tmp_path):
    report = checked(tmp_path, {"u0.wav": wav(SPOKEN["u0"])}, sets={"one": ("u0", "u1")}, audio_required=False)
    assert [(one.code, one.severity) for one in report.findings] == [("missing", Severity.WARNING)]
    assert checked(tmp_path, {"a.pdf": DESCRIPTION}, audio_required=False).findings == ()


def test_required_parts_are_missed_and_inherited_ones_are_not(tmp_path):
    required = {"scores_required": True, "description_required": True}
    report = checked(tmp_path, whole(), **required)
    assert find_problems(report) == [("the archive", "missing-description"), ("the archive", "missing-scores")]


@pytest.mark.parametrize(
    ("needed", "extra", "warned"),
    [({"EER": ("scores",)}, {}, ["scores"]), ({"EER": ("scores", "results")}, {"exp/RESULTS_summary_T1": b"x\n"}, [])],
)
def test_what_a_rank_needs_is_warned_of(tmp_path, needed, extra, warned):
    report = checked(tmp_path, whole(**extra), needed_to_rank=needed)
    found = [one for one in report.findings if one.code == "cannot-be-ranked"]
    assert [one.severity for one in found] == [Severity.WARNING] * len(warned)
    words = [one.remedy.partition(" this system cannot be ranked")[0] for one in found]
    assert words == [f"Without {word}" for word in warned]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"%PDF-1.4\n<script>alert(1)</script>", "a PDF whose structure is broken"),
        (pdf_of(b"[" * 100_000), "a PDF whose structure is broken"),
        (pdf_of(catalog=b"/OpenAction<</S/JavaScript/JS(app.alert(1))>>"), "a PDF with a script"),
        (pdf_of(b"<</S 5 0 R/F(a.exe)>>", b"/Launch "), "a PDF with a program to start"),
        (
            pdf_of().replace(b"/Root 1 0 R", b"/Root 1 0 R/ID[<00><00>]/Encrypt<</Filter/Adobe.PubSec/V 4>>"),
            "a PDF with an encryption or a compression of a kind that is not read",
        ),
        (b"", "an empty file"),
    ],
)
def test_description_that_is_no_harmless_pdf_is_refused_whether_or_not_it_is_required(tmp_path, content, found):
    report = checked(tmp_path, whole(**{"T1.pdf": content}))
    [problem] = [one for one in report.findings if one.code == "not-a-pdf"]
    assert (problem.found, problem.severity) == (found, Severity.ERROR)


def test_description_that_takes_long_to_read_is_refused_within_its_time(tmp_path, monkeypatch):
    monkeypatch.setattr(pdf_files, "_LIMITS", ChildLimits(cpu_s=1, memory_bytes=1 << 30, time_s=0.2))
    monkeypatch.setattr(pdf_files, "_read_fault", lambda _: time.sleep(60))
    report = checked(tmp_path, whole(**{"T1.pdf": DESCRIPTION}))
    [problem] = [one for one in report.findings if one.code == "not-a-pdf"]
    assert problem.found == "a PDF that cannot be read within its limits of time and memory"


def test_hostile_archive_is_a_report_too(tmp_path):
    source = pack_tar(tmp_path / "T1.tar", [("wav/u0.wav", wav(SPOKEN["u0"])), ("../../u1.wav", b"")], "w")
    report = check(source, expect(ORIGINALS, SETS), tmp_path / "documents")
    assert report.is_refused
    assert [one.code for one in report.findings] == ["path-traversal"]


def test_speech_file_that_is_too_large_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("portal.intake.check.LARGEST_SPEECH_BYTES", 20_000)
    report = checked(
        tmp_path, {"u0.wav": wav(SPOKEN["u0"][:8000]), "u1.wav": wav(SPOKEN["u4"])}, sets={"a": ("u0", "u1")}
    )
    assert find_problems(report) == [("u1", "too-large")]
    assert LARGEST_SPEECH_BYTES >= 60 * RATE * 4


def test_speech_in_memory_stays_bounded_and_in_order():
    read, handed, most = [], [], 0

    def files():
        for number in range(2000):
            read.append(str(number))
            yield Placed(f"{number}.wav", str(number), ("all",)), bytes(100_000)

    for placed, _ in _in_order(files(), lambda _placed, _data: Inspection(None, ()), 4):
        handed.append(placed.utterance)
        most = max(most, len(read) - len(handed))
    assert handed == read
    assert most * 100_000 < 12 * 2**20


def test_folder_and_archives_have_the_same_report(tmp_path):
    files = whole(**{"wav/u1.wav": b"", "wav/u5.flac": flac(ORIGINALS["u5"])})
    del files["wav/u5.wav"]
    folder = unpack(tmp_path / "folder", files.items())
    sources = [folder, pack_zip(tmp_path / "a.zip", files.items()), pack_tar(tmp_path / "a.tgz", files.items())]
    expected = expect(ORIGINALS, SETS)
    reports = [check(source, expected, tmp_path / f"documents-{source.name}") for source in sources]
    assert reports[0].findings == reports[1].findings == reports[2].findings
    assert find_problems(reports[0]) == [("u1", "empty"), ("u5", "identical-to-original")]


def test_links_in_a_folder_are_followed_but_not_for_ever(tmp_path):
    files = unpack(tmp_path / "elsewhere", whole().items())
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "speech").symlink_to(files / "wav")
    (folder / "round").symlink_to(folder)
    assert check(folder, expect(ORIGINALS, SETS), tmp_path / "documents").findings == ()


def test_expectation_survives_its_file():
    expected = expect(ORIGINALS, SETS, trial_counts={"one": (3, 40)}, limits=ArchiveLimits(members=7))
    assert ExpectedSubmission.from_json(expected.to_json()) == expected
    assert ExpectedSubmission.from_json(expected.to_json().encode()).to_json() == expected.to_json()


@pytest.mark.parametrize("text", ["[]", '{"format": "voiceprivacy-expected-submission", "version": 9}', "[" * 100_000])
def test_other_files_are_no_expectation(text):
    with pytest.raises(InputError, match="expected"):
        ExpectedSubmission.from_json(text)


@pytest.mark.parametrize("part", ["limits", "audio_required"])
def test_damaged_expectation_names_the_part(part):
    text = expect(ORIGINALS, SETS).to_json().replace(f'"{part}":', f'"{part}":7,"x":')
    with pytest.raises(InputError, match=part):
        ExpectedSubmission.from_json(text)


def test_pipe_in_a_folder_is_told_and_passed_over(tmp_path):
    folder = unpack(tmp_path / "folder", whole().items())
    os.mkfifo(folder / "u1-notes.wav")
    report = check(folder, expect(ORIGINALS, SETS), tmp_path / "documents")
    assert [(one.code, one.file) for one in report.findings] == [("not-a-file", "u1-notes.wav")]


def test_folder_may_hold_no_name_that_an_archive_may_not(tmp_path):
    folder = unpack(tmp_path / "folder", whole().items())
    (folder / "a\x1b[31m.wav").write_bytes(b"")
    report = check(folder, expect(ORIGINALS, SETS), tmp_path / "documents")
    assert [one.code for one in report.findings] == ["control-character-in-name"]
    assert report.is_refused


ACCENTED = {"jürgen-1": tone(0.5, seed=1), "müller-1": tone(0.6, seed=2)}
FORMS = ("NFC", "NFD")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("pack", [pack_zip, unpack])
def test_names_are_the_same_in_either_form_of_unicode(tmp_path, pack, form):
    spoken = {"jürgen-1.wav": wav(tone(0.5, seed=9)), "müller-1.wav": wav(tone(0.6, seed=10))}
    source = pack(tmp_path / "T1", [(unicodedata.normalize(form, name), one) for name, one in spoken.items()])
    for stored in FORMS:
        text = unicodedata.normalize(stored, expect(ACCENTED).to_json())
        report = check(source, ExpectedSubmission.from_json(text), tmp_path / stored)
        assert (report.findings, report.counts.received) == ((), 2)


@pytest.mark.parametrize("pack", [pack_zip, unpack])
def test_what_systems_left_behind_is_passed_over_with_one_note(tmp_path, pack):
    left = (
        "T1/Icon\r",
        "__MACOSX/T1/._Icon\r",
        "T1/.DS_Store",
        "$RECYCLE.BIN/u0.wav",
        "T1/@eaDir/u0.wav/x",
        "~$a.docx",
    )
    files = {f"T1/{name}.wav": wav(samples) for name, samples in SPOKEN.items()} | dict.fromkeys(left, b"")
    report = check(pack(tmp_path / "T1.made", files.items()), expect(ORIGINALS, SETS), tmp_path)
    assert [(one["code"], one["count"]) for one in report.summary()] == [("droppings", len(left))]


def test_other_control_characters_refuse_the_archive_wherever_they_stand(tmp_path):
    for name in ("__MACOSX/\x1b[2J", "T1/Icon\r\r", "a\r/Icon\r"):
        report = check(pack_zip(tmp_path / "T1.zip", [("u0.wav", b""), (name, b"")]), expect(ORIGINALS, SETS), tmp_path)
        assert [one.code for one in report.findings] == ["control-character-in-name"]


RESULTS_2022 = b"ASV-libri_dev_enrolls-libri_dev_trials_f EER: 8.665%\n"
RESULTS_2024 = b"---- ASR results ----\n  dataset split       asr    WER\n0   libri   dev  original  1.805\n"


@pytest.mark.parametrize(
    ("name", "content", "wanted"),
    [
        ("results_B9.txt", RESULTS_2022, "results as results-<stamp>/results.txt, or under a published name: "),
        ("results_B9.txt", RESULTS_2024, "results as results-<stamp>/results.txt, or under a published name: "),
        ("scores_f.txt", b"a a-1 2.5\na b-1 -1\n", "scores as results-<stamp>/ASV-"),
        ("description", b"%PDF-1.7", "a description whose name ends in .pdf"),
        ("u0.mp3", b"ID3\3" + bytes(60), "a WAV or FLAC file whose name ends in .wav or .flac"),
    ],
)
def test_file_that_its_name_keeps_from_being_used_is_warned_of(tmp_path, name, content, wanted):
    report = checked(tmp_path, whole(**{name: content}))
    (finding,) = report.findings
    assert (finding.code, finding.file, finding.severity) == ("unused-by-name", name, "warning")
    assert finding.expected.startswith(wanted)


def test_results_under_any_name_are_not_used_where_the_portal_evaluates(tmp_path):
    report = checked(tmp_path, whole(**{"results_B9.txt": RESULTS_2022}), takes_results=False)
    assert [finding.code for finding in report.findings] == ["other-file"]
