"""What is erased is found nowhere any more: no name and no byte in database, files, caches and later exports."""

import io
import json
import pickle
import zipfile
from base64 import b64decode
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from django.apps import apps
from django.conf import settings
from django.core.cache import cache
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.utils import timezone

from anonymization.app.models import NetworkTraining
from evaluation.app.attacks.selectors import list_attacks
from evaluation.app.audio_measures.services import start_measures
from evaluation.app.models import Hypothesis, MetricValue, SpeakerVector
from listening.app.models import Analysis, Answer, Participant, Session, Stimulus, Study
from listening.app.results import handlers
from listening.app.results.services import start_analysis
from portal.challenges.data_files import keep_data_files, make_data_files
from portal.challenges.models import DataFile, TrialList, Utterance
from portal.core import audit
from portal.core.models import AuditEvent, CachedValue
from portal.core.storage import store_bytes
from portal.deletion import erasure
from portal.jobs.models import Job, JobEvent
from portal.jobs.runner import execute
from portal.submissions.models import SubmittedFile, Upload
from tests.evaluation.formant_speech import voice
from tests.listening.factories import make_session, make_study
from tests.listening.results.answered import analysed, make_answered
from tests.portal.attack_runs import make_recognition_run
from tests.portal.attack_submissions import attack, make_unprotected_submission, store_samples
from tests.portal.factories import make_corpus, make_job
from tests.portal.network_trainings import make_material, make_network_training
from tests.portal.objective_runs import tones_edition

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("few_resamples")]
TRIALS = "tones_trials_f"


@pytest.fixture(autouse=True)
def figures_on_pages(monkeypatch):
    """The figures of an analysis in the form in which their words can be searched, and in no other."""
    real = handlers.list_figures
    monkeypatch.setattr(
        handlers, "list_figures", lambda results: [replace(one, formats=("svg",)) for one in real(results)]
    )


@pytest.fixture
def folder(own_storage, tmp_path):
    return tmp_path


def make_world(*, is_evaluated=True):
    """A corpus whose speech was submitted, listened to and handed out; also measured, attacked, and analysed."""
    edition = tones_edition(speakers=4)
    submission = make_unprotected_submission(edition)
    for place, file in enumerate(submission.files.order_by("pk")):
        submission.files.filter(pk=file.pk).update(audio=store_samples(voice(place % 4, place, seconds=0.7)))
    names = list(edition.corpus.utterances.order_by("name").values_list("name", "transcript"))
    lines = "".join(f"{name} {text}\n" for name, text in names)
    for path in ("results/text", "notes.txt"):
        key = store_bytes(f"{path}\n{lines}".encode(), ".document")
        submission.documents.create(path=path, kind="other", key=key, bytes=1)
    submission.report = store_bytes(
        json.dumps({"problems": [f"{name} is quiet" for name, _ in names]}).encode(), ".json"
    )
    submission.save()
    if is_evaluated:
        run = start_measures(submission=submission, data_set=edition.corpus.data_sets.get(name=TRIALS))
        assert execute(run.job.pk).state == "succeeded"
        run = attack(submission, data_sets=[TRIALS])
        assert run.job.state == "succeeded"
    make_recognition_run(submission, sets=(TRIALS,))
    trials = TrialList.objects.filter(trial_set__name=TRIALS)
    text = "".join(f"tones-s{speaker} {name} nontarget\n" for speaker in (0, 2) for name, _ in names)
    trials.update(origin="given", file=store_bytes(text.encode(), ".trials"))
    for audio in Utterance.objects.values_list("audio", flat=True):
        Hypothesis.objects.create(engine="two@1", audio=audio, text="something")
    JobEvent.objects.create(job=Job.objects.first(), attempt=1, text=f"Read {names[0][0]} and {names[-1][0]}.")
    for name, _ in names:
        audit.record("corpus.changed", edition.corpus, renamed={name: name})
    keep_data_files(edition, make_data_files(edition, lambda *_: None))
    study = make_answered(edition=edition, evaluators=4, trials=4, name="heard")
    if is_evaluated:
        analysed(start_analysis(study=study, by=edition.organizers.get()))
    cache.set("candidates", [name for name, _ in names])
    return edition


def everything(content):
    """The texts and arrays that a file holds, unpacked."""
    yield content
    if zipfile.is_zipfile(io.BytesIO(content)):  # another test may have left a part of one
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            for name in packed.namelist():
                yield name.encode()
                inner = packed.read(name)
                if name.endswith(".npy"):
                    values = np.load(io.BytesIO(inner), allow_pickle=False)
                    yield "\n".join(map(str, values.ravel())).encode() if values.dtype.kind in "US" else b""
                else:
                    yield from everything(inner)


def find(words, folder):
    """Where one of these is found: in rows, in stored files and their names, in uploads, in the cache."""
    found = []
    words = [word.encode() for word in words]
    for model in filter(lambda one: one._meta.managed, apps.get_models(include_auto_created=True)):
        for row in model._base_manager.values_list():
            line = json.dumps(row, ensure_ascii=False, default=str).encode()
            found += [f"row {model._meta.label} {line[:300]}" for word in words if word in line]
    for row in CachedValue.objects.all():
        found += [
            f"cache {row.cache_key}" for word in words if word in pickle.dumps(pickle.loads(b64decode(row.value)))
        ]
    for path in chain(Path(default_storage.location).rglob("*"), settings.UPLOAD_DIR.iterdir()):
        found += [f"name {path}" for word in words if word in path.name.encode()]
        for part in everything(path.read_bytes() if path.is_file() else b""):
            found += [f"{path.name}: {word} in {part[:200]!r}" for word in words if word in part]
    return found


def marks_of(utterances):
    """Names of utterances, hashes of their files and of all that was made of them."""
    marks = {one.name for one in utterances}
    audio = [one.audio for one in utterances]
    audio += SubmittedFile.objects.filter(utterance__in=utterances).values_list("audio", flat=True)
    audio += Stimulus.objects.filter(item__utterance__in=utterances).values_list("file", flat=True)
    return marks | {Path(key).name.partition(".")[0] for key in audio}


@pytest.mark.usefixtures("quick_figures", "quick_measures", "plain_figures_of_studies")
def test_speaker_leaves_no_name_and_no_byte_and_others_stay(folder, capsys, client):
    edition = make_world()
    speaker = Stimulus.objects.filter(item__utterance__data_sets__name=TRIALS).first().item.utterance.speaker
    name = speaker.name
    marks = marks_of(list(speaker.utterances.all())) | {name}
    assert {where.split()[0] for where in find(marks, folder)} >= {"row", "cache", "name"}  # the search finds
    numbers, vectors = MetricValue.objects.count(), SpeakerVector.objects.count()
    call_command("erase", "speaker", edition.corpus.name, name, "--dry-run")
    said = capsys.readouterr().out
    assert f"Would be erased: speaker tones/{name}" in said
    assert "utterances: 4\n" in said
    assert edition.corpus.speakers.count() == 4
    receipt = folder / "receipt.json"
    call_command("erase", "speaker", edition.corpus.name, name, "--receipt", str(receipt))
    assert find(marks, folder) == []
    told = json.loads(receipt.read_text())
    assert told["rows"]["utterances"] == 4
    assert told["rows"]["anonymised recordings"] >= 4
    assert told["rows"]["stimuli"] > 0
    assert told["rows"]["answers"] > 0
    assert told["rows"]["analyses"] == 1
    assert marks & set(told["files"])
    assert receipt.stat().st_mode & 0o777 == 0o600
    capsys.readouterr()
    call_command("erase", "check", str(receipt))
    assert f"This portal signed that speaker tones/{name} was erased" in capsys.readouterr().out
    receipt.write_text(receipt.read_text().replace('"utterances": 4', '"utterances": 3'))
    with pytest.raises(CommandError, match="found another or a changed one"):
        call_command("erase", "check", str(receipt))
    # what is of others stays, and pages open
    assert (edition.corpus.speakers.count(), edition.corpus.utterances.count()) == (3, 12)
    assert MetricValue.objects.count() == numbers
    assert 0 < SpeakerVector.objects.count() < vectors
    assert Answer.objects.exists()
    assert not Analysis.objects.exists()
    assert not DataFile.objects.filter(data_set__name=TRIALS).exists()
    trials = TrialList.objects.get(trial_set__name=TRIALS)
    assert (trials.model_count, trials.target_count, trials.nontarget_count) == (1, 0, 12)
    call_command("verify")
    client.force_login(edition.organizers.get())
    submission = edition.systems.exclude(submissions=None).first().submissions.first()
    attacked = list_attacks(submission)[0]
    assert attacked.voices == []
    pages = [edition.corpus, submission, submission.system, Study.objects.get(name="heard")]
    assert [client.get(one.get_absolute_url()).status_code for one in pages] == [200] * 4
    made = make_data_files(edition, lambda *_: None)  # a later export
    keep_data_files(edition, made)
    study = Study.objects.get(name="heard")
    analysed(start_analysis(study=study, by=edition.organizers.first()))
    assert find(marks, folder) == []


@pytest.mark.usefixtures("quick_figures")
def test_utterance_that_became_a_stimulus_is_erased(folder):
    edition = make_world(is_evaluated=False)
    utterance = Stimulus.objects.filter(item__utterance__data_sets__name=TRIALS).first().item.utterance
    other = edition.corpus.utterances.exclude(pk=utterance.pk).filter(speaker=utterance.speaker).first()
    marks = marks_of([utterance])
    assert find(marks, folder)
    call_command("erase", "utterance", "tones", utterance.name, "--receipt", str(folder / "receipt.json"))
    assert find(marks, folder) == []
    assert find({other.name}, folder)
    assert AuditEvent.objects.get(action="speech.erased").data["what"] == "utterance"
    call_command("verify")


def test_training_that_keeps_voices_goes_with_a_speaker(folder):
    data_set = make_material()
    kept, gone = make_network_training(data_set.corpus), make_network_training(data_set.corpus)
    seed = gone.seeds.get()
    seed.files |= {"voices.safetensors": store_bytes(b"the voice of tones_train-1", ".safetensors")}
    seed.save()
    call_command("erase", "utterance", "tones", "tones_train-1-0", "--receipt", str(folder / "utterance.json"))
    assert NetworkTraining.objects.count() == 2
    call_command("erase", "speaker", "tones", "tones_train-1", "--receipt", str(folder / "speaker.json"))
    assert list(NetworkTraining.objects.all()) == [kept]
    assert not default_storage.exists(seed.files["voices.safetensors"])


def test_archives_that_are_no_submission_yet_are_named(folder, capsys):
    study = make_study(name="heard", state=Study.State.CLOSED)
    utterance, corpus = Stimulus.objects.first().item.utterance, study.edition.corpus
    other = make_corpus("others").editions.create(name="other", title="Other")
    fields = {"file_name": "a.zip", "size": 9, "offset": 5, "expires_at": timezone.now()}
    uploads = [Upload.objects.create(edition=one, **fields) for one in (study.edition, None)]
    Upload.objects.create(edition=other, **fields)
    Upload.objects.create(edition=study.edition, **fields | {"state": Upload.State.COMPLETE})
    words = ("erase", "utterance", corpus.name, utterance.name)
    expected = [f"upload {one.pk}, kept until {one.expires_at:%Y-%m-%d}" for one in uploads]
    call_command(*words, "--dry-run")
    said = capsys.readouterr().out
    assert [line for line in said.splitlines() if line.startswith("Not searched")] == [
        f"Not searched: {one}" for one in expected
    ]
    call_command(*words, "--receipt", str(folder / "receipt.json"))
    assert json.loads((folder / "receipt.json").read_text())["not_searched"] == expected


def test_erasing_waits_for_people_and_jobs_and_clears_designs(folder):
    study = make_study(name="open")
    utterance = Stimulus.objects.first().item.utterance
    corpus = study.edition.corpus.name
    receipt = folder / "receipt.json"
    with pytest.raises(CommandError, match=r"plays it and is not closed\. Close it, then erase again"):
        call_command("erase", "utterance", corpus, utterance.name, "--receipt", str(receipt))
    assert not receipt.exists()
    Study.objects.update(state=Study.State.PREPARED, launched_at=None)
    job = make_job("waiting", title="Measure", edition=study.edition.name)
    with pytest.raises(CommandError, match=rf"“Measure” works on the corpus {corpus}\. Wait until it has ended"):
        call_command("erase", "utterance", corpus, utterance.name, "--receipt", str(receipt))
    job.delete()
    call_command("erase", "utterance", corpus, utterance.name, "--receipt", str(receipt))
    study.refresh_from_db()
    assert (study.state, study.presentations.count(), study.certificate) == ("draft", 0, {})
    for words, sentence in (
        (("utterance", corpus, utterance.name), f"The corpus {corpus} has no utterance “{utterance.name}”"),
        (("speaker", "none", "a"), f"There is no corpus “none”; there are: {corpus}."),
        (("participant", "none", "a"), "There is no listening test “none”; there are: open."),
        (("participant", "open", "a"), "Nobody in the listening test open has this ID"),
    ):
        with pytest.raises(CommandError, match=sentence):
            call_command("erase", *words, "--dry-run")


def test_participant_is_erased_with_all_sessions(folder, capsys):
    study = make_study(name="open")
    other, session = make_session(study), make_session(study)
    Participant.objects.filter(pk=session.participant_id).update(platform_id="5f3c9a7e2b1d4f0012345678")
    session.answers.create(
        trial=session.block.trials.first(), task="naturalness", rating=5, received_at=session.consented_at
    )
    audit.record("study.note", study, person="5f3c9a7e2b1d4f0012345678")
    marks = {"5f3c9a7e2b1d4f0012345678", session.token, session.withdrawal_code}
    assert find(marks, folder)
    call_command("erase", "participant", "open", "5f3c9a7e2b1d4f0012345678", "--dry-run")
    assert "  answers: 1\n" in capsys.readouterr().out
    call_command("erase", "participant", "open", "5f3c9a7e2b1d4f0012345678", "--receipt", str(folder / "receipt.json"))
    assert find(marks, folder) == []
    assert list(Session.objects.all()) == [other]
    assert study.blocks.filter(holder=None).exists()


def test_short_name_of_a_participant_goes_from_the_log_of_the_study_alone(folder):
    study = make_study(name="open")
    session = make_session(study)
    Participant.objects.filter(pk=session.participant_id).update(platform_id="7")
    jobs = [make_job(state, parameters={"person": "7", "code": session.token}) for state in ("running", "succeeded")]
    for job in jobs:
        JobEvent.objects.create(job=job, attempt=7, text="Started, attempt 7.")
    told = audit.record("study.note", study, person="7", text="Version 7 of 7", token=session.token)
    other = audit.record("corpus.note", study.edition.corpus, person="7")
    call_command("erase", "participant", "open", "7", "--receipt", str(folder / "receipt.json"))
    for row in (*jobs, told, other):
        row.refresh_from_db()
    assert {event.text for event in JobEvent.objects.all()} == {"Started, attempt 7."}
    assert [job.parameters["person"] for job in jobs] == ["7", "7"]
    assert [job.parameters["code"] for job in jobs] == [session.token, erasure.ERASED]
    assert told.data == {"person": erasure.ERASED, "text": "Version 7 of 7", "token": erasure.ERASED}
    assert other.data == {"person": "7"}


def test_speech_is_erased_from_what_tells_of_its_corpus_alone(folder):
    corpus, other = make_corpus(name="mine"), make_corpus(name="other")
    name = corpus.utterances.first().name
    other.utterances.filter(pk=other.utterances.first().pk).update(name=name)
    texts = []
    for one in (corpus, other):
        job = make_job("succeeded", title=f"Read {name}", corpus=one.name)
        texts += [(job, "title"), (JobEvent.objects.create(job=job, attempt=1, text=f"Read {name}."), "text")]
        texts.append((audit.record("corpus.changed", one, renamed=name), "data"))
    call_command("erase", "utterance", "mine", name, "--receipt", str(folder / "receipt.json"))
    for row, _ in texts:
        row.refresh_from_db()
    assert [name in str(getattr(row, field)) for row, field in texts] == [False] * 3 + [True] * 3


def test_imported_ratings_are_refused_with_what_to_do(folder):
    study = make_study(name="open")
    participant = make_session(study).participant
    Participant.objects.filter(pk=participant.pk).update(platform_id="worker-1")
    Study.objects.update(imported="content/ab.zip", state=Study.State.CLOSED)
    utterance = Stimulus.objects.first().item.utterance
    for words in (("participant", "open", "worker-1"), ("utterance", study.edition.corpus.name, utterance.name)):
        for options in (["--dry-run"], ["--receipt", str(folder / "receipt.json")]):
            with pytest.raises(CommandError, match=r"were imported as a file.* Delete that test on the page Manage"):
                call_command("erase", *words, *options)
    assert Participant.objects.filter(pk=participant.pk, platform_id="worker-1").exists()
    assert not (folder / "receipt.json").exists()


@pytest.mark.parametrize(
    ("speakers", "text", "kept"),
    [
        (["p22"], "p22 a\np225 b\np22-1 c\n", "p225 b\np22-1 c\n"),
        (["19"], "19 a\nEER 19 %\n1-19-2 b\n/data/19/x\n", "EER 19 %\n1-19-2 b\n"),
        (["1089"], "m,1089\nB2;1089;0.3\nm\t1089\tf\nm,10890\nm,0.1089\n", "m,10890\nm,0.1089\n"),
    ],
)
def test_names_are_found_whole(speakers, text, kept):
    pattern = erasure._pattern([], speakers, [])
    assert erasure._without_lines(text.encode(), pattern) == kept.encode()
