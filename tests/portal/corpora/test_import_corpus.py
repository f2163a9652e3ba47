"""Import of corpora through their job: complete reports, nothing half done, the same again changes nothing."""

from __future__ import annotations

import io
import os
import re
import signal
import struct
from pathlib import Path

import numpy as np
import pytest
import soundfile
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command

from common.child_process import ChildLimits
from common.errors import NotPossible
from portal.challenges.models import Corpus, DataSet, Speaker, TrialList, Utterance
from portal.core.models import AuditEvent
from portal.corpora import handlers
from portal.corpora.selectors import data_set_table, plan_table, trial_table
from portal.corpora.services import start_import
from portal.jobs.models import Job, JobState
from portal.jobs.runner import JobContext, JobReleased, execute
from tests.portal.factories import make_organizer

pytestmark = pytest.mark.django_db(transaction=True)
MODELS = (Corpus, Speaker, Utterance, DataSet, TrialList)
HEADER = "utterance_id,speaker,gender,corpus,data_set,role,duration_s,transcript,licence,path"


def tone(seconds: float = 1.0, rate: int = 16_000, hertz: float = 200.0) -> np.ndarray:
    return (8000 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)).astype(np.int16)


@pytest.fixture
def corpus(tmp_path):
    """A folder with a manifest of two women and two men, one enrolment and two trial utterances each."""
    folder = tmp_path / "little"
    folder.mkdir()
    rows = [HEADER]
    for number, (speaker, gender) in enumerate([("a", "F"), ("b", "F"), ("c", "M"), ("d", "M")]):
        for utterance in range(3):
            name = f"{speaker}-{utterance}"
            role = "enrolment" if utterance == 0 else "trial"
            data_set = "x_enrolls" if utterance == 0 else f"x_trials_{gender.lower()}"
            soundfile.write(folder / f"{name}.flac", tone(hertz=100 + 10 * number + utterance), 16_000)
            rows.append(f"{name},{speaker},{gender},x,{data_set},{role},1.000,HELLO,CC0-1.0,{name}.flac")
    (folder / "utterances.csv").write_text("\n".join(rows) + "\n")
    return folder


def counts() -> list[int]:
    return [model.objects.count() for model in MODELS]


def executed(job: Job) -> Job:
    done = execute(job.pk)
    assert done is not None
    return done


def run(folder: Path, name: str = "little", **options) -> Job:
    job = start_import(folder=str(folder), name=name, run_here=True, **options)
    return executed(job)


def test_import_brings_speakers_utterances_sets_and_trials(corpus):
    job = run(corpus)
    assert (job.state, job.failure) == (JobState.SUCCEEDED, "")
    assert counts() == [1, 4, 12, 3, 2]
    assert AuditEvent.objects.filter(action="corpus.imported").count() == 1
    utterance = Utterance.objects.get(name="a-1")
    assert (utterance.samples, utterance.rate_hz, utterance.duration_s, utterance.transcript) == (
        16_000,
        16_000,
        1.0,
        "HELLO",
    )
    with default_storage.open(utterance.audio) as stored:
        assert stored.read() == (corpus / "a-1.flac").read_bytes()


@pytest.mark.postgres
def test_same_import_again_changes_nothing(corpus):
    run(corpus)
    before = [list(model.objects.order_by("pk").values()) for model in MODELS[1:]]
    job = run(corpus)
    assert job.result["gained"] == dict.fromkeys(
        ["speakers", "utterances", "audio_files", "data_sets", "trial_lists"], 0
    )
    assert [list(model.objects.order_by("pk").values()) for model in MODELS[1:]] == before


def test_audio_can_follow_lists(corpus):
    kaldi = corpus.parent / "kaldi" / "x_train"
    kaldi.mkdir(parents=True)
    (kaldi / "wav.scp").write_text("a-0 somewhere/a-0.flac\nb-0 somewhere/b-0.flac\n")
    (kaldi / "utt2spk").write_text("a-0 a\nb-0 b\n")
    (kaldi / "spk2gender").write_text("a f\nb f\n")
    (kaldi / "text").write_text("a-0 HELLO\nb-0 HELLO\n")
    (kaldi / "utt2dur").write_text("a-0 1.0 \nb-0 1.0 \n")
    assert run(kaldi.parent, layout="kaldi", without_audio=True).state == JobState.SUCCEEDED
    assert Utterance.objects.filter(audio="").count() == 2
    job = run(kaldi.parent, layout="kaldi", audio_root=str(corpus))
    assert (job.state, job.result["gained"]["audio_files"]) == (JobState.SUCCEEDED, 2)
    assert not Utterance.objects.filter(audio="").exists()


@pytest.mark.postgres
def test_contradiction_is_refused_and_changes_nothing(corpus):
    run(corpus)
    before = counts()
    soundfile.write(corpus / "a-1.flac", tone(hertz=333), 16_000)
    manifest = corpus / "utterances.csv"
    manifest.write_text(
        manifest.read_text().replace("a-2,a,F,x,x_trials_f,trial,1.000,HELLO", "a-2,a,F,x,x_trials_f,trial,1.000,BYE")
    )
    job = run(corpus)
    assert (job.state, counts()) == (JobState.FAILED, before)
    assert {(p["code"], p["file"]) for p in job.problems if p["severity"] == "error"} == {
        ("corpus-has-other-audio", "utterance a-1, audio"),
        ("corpus-has-other-transcript", "utterance a-2, transcript"),
    }


def _missing(folder):
    (folder / "a-1.flac").unlink()
    return "missing-file"


def _twice(folder):
    manifest = folder / "utterances.csv"
    rows = manifest.read_text().splitlines()
    manifest.write_text("\n".join([*rows, rows[2]]) + "\n")
    return "duplicate-utterance"


def test_all_problems_of_a_corpus_are_told_at_once(corpus):
    expected = {_missing(corpus), _twice(corpus)}
    soundfile.write(corpus / "b-1.flac", np.stack([tone(), tone()], axis=1), 16_000)
    soundfile.write(corpus / "c-1.flac", tone(rate=44_100), 44_100)
    job = run(corpus)
    assert {problem["code"] for problem in job.problems if problem["severity"] == "error"} == expected | {
        "not-mono",
        "wrong-rate",
    }


def test_other_rate_is_converted_when_asked_and_recorded(corpus):
    soundfile.write(corpus / "a-1.flac", tone(rate=48_000), 48_000, subtype="PCM_24")
    job = run(corpus, resample=True)
    assert (job.state, job.failure) == (JobState.SUCCEEDED, "")
    utterance = Utterance.objects.get(name="a-1")
    assert (utterance.rate_hz, utterance.samples, utterance.converted_from) == (
        16_000,
        16_000,
        "48000 Hz, PCM_24, FLAC",
    )
    with default_storage.open(utterance.audio) as stored:
        samples, rate = soundfile.read(io.BytesIO(stored.read()), dtype="int16")
    assert (rate, samples.size) == (16_000, 16_000)
    spectrum = np.abs(np.fft.rfft(samples))
    assert np.argmax(spectrum) == 200


def test_interrupted_import_continues_without_examining_again(corpus, monkeypatch, tmp_path):
    examined, stopping = tmp_path / "examined", tmp_path / "stopping"
    original = handlers.inspect_audio
    examined.touch()

    def inspect(path):
        if len(examined.read_text().split()) == 5 and not stopping.exists():
            stopping.touch()
            signal.pause()
        with examined.open("a") as file:
            file.write(f"{path.name} ")
        return original(path)

    def check(context):
        if stopping.exists():
            raise JobReleased

    monkeypatch.setattr(handlers, "inspect_audio", inspect)
    job = start_import(folder=str(corpus), name="little", run_here=True)
    with monkeypatch.context() as patch:
        patch.setattr(JobContext, "check", check)
        assert executed(job).state == JobState.WAITING
    assert executed(job).state == JobState.SUCCEEDED
    names = examined.read_text().split()
    assert len(names) == len(set(names)) == 12
    assert not list((handlers.settings.DATA_DIR / "journals").glob(f"{job.pk}*"))


# What would hang, fill or crash its reader ---------------------------------------------------------


def hang(*_, **__):
    re.fullmatch(r"(a+)+", "a" * 60 + "b")


def fill(*_, **__):
    return [bytearray(1 << 26) for _ in range(100)]


def crash(*_, **__):
    os.kill(os.getpid(), signal.SIGSEGV)


@pytest.mark.parametrize(
    ("reader", "end", "found", "times"),
    [
        ("inspect_audio", fill, "a-0.flac: it used more memory than its limit", 1),
        ("inspect_audio", crash, "a-0.flac: it died", 3),
        ("read_corpus", hang, "little: it used more processor time than its limit", 1),
    ],
)
def test_folder_that_would_end_its_reader_is_refused_with_the_file(corpus, monkeypatch, reader, end, found, times):
    limits = ChildLimits(1 if end is hang else 30, 1 << 28, 60)
    monkeypatch.setattr(handlers, "LISTS", limits)
    monkeypatch.setattr(handlers, "_limits_of_audio", lambda _: limits)
    monkeypatch.setattr(handlers, reader, end)
    job = run(corpus)
    assert (job.state, [problem["code"] for problem in job.problems]) == (JobState.FAILED, ["cannot-be-read"])
    assert found in job.problems[0]["found"]
    assert job.events.filter(text__startswith="The process that reads the corpus was ended at").count() == times
    assert not Corpus.objects.exists()


def header_of(rate: int, channels: int, frames: int) -> bytes:
    """A WAV file whose header promises what its one sample does not hold."""
    size = frames * channels * 2
    start = struct.pack(
        "<4sI4s4sIHHIIHH", b"RIFF", 36 + size & 0xFFFFFFFF, b"WAVE", b"fmt ", 16, 1, channels, rate, 0, 2, 16
    )
    return start + struct.pack("<4sI", b"data", size & 0xFFFFFFFF) + b"\0\0"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a-0.flac", header_of(1, 65_535, 1)),
        ("a-0.flac", b"fLaC" + b"\xff" * 4000),
        ("utterances.csv", HEADER.encode() + b"\n" + b'"' * 3_000_001),
        ("utterances.csv", HEADER.encode() + b"\n" + b"1" * 3_000_000 + b",a,F,x,y,trial,1e999999999,A,B,c.flac\n"),
    ],
    ids=["channels", "flac", "quotes", "digits"],
)
def test_hostile_files_are_refused_in_words(corpus, name, content):
    (corpus / name).write_bytes(content)
    job = run(corpus)
    assert (job.state, job.failure_actor) == (JobState.FAILED, "organizer")
    assert "The corpus was not imported" in job.failure
    assert name in {problem["file"] for problem in job.problems}
    assert not Corpus.objects.exists()


def test_same_import_under_way_is_named(corpus):
    job = start_import(folder=str(corpus), name="little", run_here=True)
    with pytest.raises(NotPossible, match="under way already") as found:
        start_import(folder=str(corpus), name="little")
    assert found.value.under_way == job
    with pytest.raises(NotPossible) as other:
        start_import(folder=str(corpus), name="little", is_synthetic=True)
    assert other.value.under_way is None


def test_command_says_whose_a_new_corpus_is(corpus, capsys):
    owner = make_organizer()
    with pytest.raises(CommandError, match="No organizer's account has the address nobody"):
        call_command("import_corpus", str(corpus), "--owner", "nobody@test.example")
    call_command("import_corpus", str(corpus), "--name", "little", "--owner", owner.email)
    call_command("import_corpus", str(corpus), "--name", "all", "--shared")
    assert "No organizer sees it yet." not in capsys.readouterr().out
    found = {one.name: (one.created_by, one.is_shared) for one in Corpus.objects.all()}
    assert found == {"little": (owner, False), "all": (None, True)}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"name": "a b"}, "name: Use letters a to z"),
        ({"without_audio": True}, "--without-audio: Only for Kaldi data directories; this is read as a CSV manifest"),
    ],
)
def test_command_checks_what_the_form_checks(corpus, options, sentence):
    with pytest.raises(CommandError, match=re.escape(sentence)):
        call_command("import_corpus", str(corpus), **options)
    assert not Job.objects.exists()


def test_official_kaldi_directories_give_the_plan_s_tables(librispeech):
    job = run(librispeech / "data", name="libri", without_audio=True)
    assert (job.state, job.failure) == (JobState.SUCCEEDED, "")
    rows = data_set_table(Corpus.objects.get())
    assert [(str(r.data_set), r.female, r.male, r.utterances) for r in rows] == [
        ("libri_dev_enrolls", 15, 14, 343),
        ("libri_dev_trials_f", 20, 0, 1018),
        ("libri_dev_trials_m", 0, 20, 960),
        ("libri_test_enrolls", 16, 13, 438),
        ("libri_test_trials_f", 20, 0, 734),
        ("libri_test_trials_m", 0, 20, 762),
    ]
    assert [(p.subset, p.part, p.female, p.male, p.speakers, p.utterances) for p in plan_table(rows)] == [
        ("libri_dev", "Enrolment", 15, 14, 29, 343),
        ("libri_dev", "Trial", 20, 20, 40, 1978),
        ("libri_test", "Enrolment", 16, 13, 29, 438),
        ("libri_test", "Trial", 20, 20, 40, 1496),
    ]
    trials = trial_table(Corpus.objects.get(), rows)
    assert [(t.subset, t.kind, t.female, t.male, t.total, t.origin) for t in trials] == [
        ("libri_dev", "Same-speaker", 704, 644, 1348, "given"),
        ("libri_dev", "Different-speaker", 14566, 12796, 27362, "given"),
        ("libri_test", "Same-speaker", 548, 449, 997, "given"),
        ("libri_test", "Different-speaker", 11196, 9457, 20653, "given"),
    ]


def test_file_that_changes_during_the_import_is_refused(corpus, monkeypatch):
    original = handlers._keep

    def change_then_keep(context, draft, facts, journal):
        soundfile.write(corpus / "a-1.flac", tone(hertz=777), 16_000)
        return original(context, draft, facts, journal)

    monkeypatch.setattr(handlers, "_keep", change_then_keep)
    job = run(corpus)
    assert (job.state, counts()) == (JobState.FAILED, [0, 0, 0, 0, 0])
    assert job.failure == "The file a-1.flac changed while the corpus was imported. Nothing was changed."


def test_licence_of_the_form_wins_and_a_stated_one_stays(corpus):
    manifest = corpus / "utterances.csv"
    text = manifest.read_text()
    manifest.write_text(text.replace("CC0-1.0", ""))
    assert "kept_licence" not in run(corpus).result
    assert Corpus.objects.get().licence == ""
    manifest.write_text(text)
    run(corpus)
    assert Corpus.objects.get().licence == "CC0-1.0"
    assert run(corpus, licence="CC BY 4.0").result["kept_licence"] == "CC0-1.0"
    run(corpus, name="other", licence="CC BY 4.0")
    assert Corpus.objects.get(name="other").licence == "CC BY 4.0"
