"""Archives of corpora, uploaded as the page does: imported by a job, or refused with every error named."""

import csv
import hashlib
import os
from datetime import timedelta

import numpy as np
import pytest
from django.conf import settings
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape

from portal.challenges.models import Corpus
from portal.corpora import handlers
from portal.corpora.handlers import unpacking_folder
from portal.corpora.services import start_import
from portal.jobs.models import Job, JobState
from portal.jobs.runner import execute
from portal.submissions.leftovers import remove_strays, tidy_unpacked
from portal.submissions.models import Upload
from portal.submissions.resumable_uploads import upload_path
from tests.portal.factories import make_organizer, make_user
from tests.portal.intake.packing import pack_tar, pack_zip, wav
from tests.portal.submissions.test_uploads import Tus, sentence

pytestmark = pytest.mark.django_db(transaction=True)

HEADER = ("utterance_id", "speaker", "gender", "data_set", "role", "transcript", "path")


def make_files(folder="little/", speakers="abcd"):
    """A manifest of an enrolment and a trial utterance of each speaker, with their tones."""
    rows, files = [HEADER], {}
    for number, speaker in enumerate(speakers):
        gender = "fm"[number % 2]
        for role, data_set in (("enrolment", "x_enrolls"), ("trial", f"x_trials_{gender}")):
            name = f"{speaker}-{role}"
            rows.append((name, speaker, gender, data_set, role, "HELLO", f"wav/{name}.wav"))
            sound = np.sin(np.arange(8000) * (number + 1) * (1 if role == "trial" else 2) / 60)
            files[f"{folder}wav/{name}.wav"] = wav((8000 * sound).astype(np.int16))
    lines = "\n".join(",".join(row) for row in rows)
    return {f"{folder}utterances.csv": f"{lines}\n".encode()} | files


@pytest.fixture
def sender(organizer):
    return Tus(organizer)


@pytest.fixture
def archive(tmp_path):
    return pack_zip(tmp_path / "little.zip", make_files().items()).read_bytes()


def begin(sender, size, **metadata):
    """What the form of the page says of a corpus."""
    metadata = {"edition": "", "corpus": "little", "layout": "", "filename": "little.zip"} | metadata
    return sender.create(size=size, **metadata)


def upload(sender, content, **metadata):
    address = begin(sender, len(content), **metadata)["Location"]
    for start in range(0, len(content), 40_000):
        answer = sender.send(address, start, content[start : start + 40_000])
        assert answer.status_code == 204, answer.content
    return sender.state(address)


def run(state) -> Job:
    job = execute(state["job"]["id"])
    assert job is not None
    return job


def test_all_errors_of_an_archive_are_named_by_its_own_paths(sender, tmp_path):
    files = make_files()
    rows = list(csv.reader(files["little/utterances.csv"].decode().splitlines()))
    rows[1][2], rows[2][6] = "x", "../../etc/passwd"
    files["little/utterances.csv"] = "\n".join(map(",".join, rows)).encode()
    files["little/wav/b-trial.wav"] = b""
    del files["little/wav/c-trial.wav"]
    content = pack_zip(tmp_path / "little.zip", files.items()).read_bytes()
    job = run(upload(sender, content, is_synthetic="on", licence="CC BY 4.0"))
    assert (job.state, job.failure_actor) == (JobState.FAILED, "organizer")
    assert job.failure_remedy == "Correct what the report lists, pack it and upload it again."
    assert {one["code"] for one in job.problems} >= {"path-outside", "empty", "missing-file", "unknown-gender"}
    assert str(settings.DATA_DIR) not in str(job.problems)
    assert not upload_path(Upload.objects.get()).exists()
    assert (Corpus.objects.count(), list(unpacking_folder().glob("*"))) == (0, [])
    page = sender.client.get(job.get_absolute_url()).content.decode()
    again = f"{reverse('submissions:upload-corpus')}?name=little&is_synthetic=on&licence=CC+BY+4.0"
    link = f'<a class="button" href="{escape(again)}">Upload again</a>'
    assert (link in page, "Run again" in page, "next: you, as an organizer." in page) == (True, False, True)
    form = sender.client.get(again).context["form"]
    assert {name: form[name].value() for name in form.fields if form[name].value()} == {
        "name": "little",
        "is_synthetic": "on",
        "licence": "CC BY 4.0",
    }
    assert "<div><dt>Archive</dt><dd>little.zip</dd></div>" in page
    assert not any(words in page for words in ("<dt>Folder</dt>", "<dt>Upload</dt>", "<dt>Sha256</dt>"))
    sender.client.post(reverse("jobs:again", args=[job.pk]))
    kept = Job.objects.get(pk=job.pk)
    assert (kept.state, kept.problems) == (JobState.FAILED, job.problems)


def test_archive_that_leads_elsewhere_is_refused_as_a_whole(sender, tmp_path):
    content = pack_tar(tmp_path / "little.tar", [*make_files().items(), ("../out.wav", b"x")], "w").read_bytes()
    job = run(upload(sender, content, filename="little.tar"))
    assert [one["code"] for one in job.problems] == ["path-traversal"]
    assert (job.state, Corpus.objects.count()) == (JobState.FAILED, 0)


def test_form_of_an_upload_is_refused_with_every_error(sender):
    answer = begin(sender, 100, corpus="no name", layout="tar")
    assert answer.status_code == 422
    assert sentence(answer).startswith("Use letters a to z")
    assert "“tar” is not in it" in sentence(answer)
    for metadata, status, words in (
        ({"edition": "vpc"}, 422, "send “edition” or “corpus”, not both"),
        ({"corpus": "upload"}, 403, "A corpus cannot be called upload"),
        ({"filename": "little.rar"}, 422, "“little.rar” is not a supported archive."),
    ):
        answer = begin(sender, 100, **metadata)
        assert (answer.status_code, words in sentence(answer)) == (status, True), sentence(answer)
    assert begin(sender, 10**12).status_code == 413
    assert Upload.objects.count() == 0


def test_only_organizers_upload_corpora_each_their_own(sender, archive):
    assert begin(Tus(), 100).status_code == 401
    refused = begin(Tus(make_user()), 100)
    assert (refused.status_code, sentence(refused)) == (403, "Only organizers import corpora.")
    address = begin(sender, len(archive))["Location"]
    other = Tus(make_organizer())
    assert other("HEAD", address).status_code == 404
    assert other.send(address, 0, archive).status_code == 404
    page = reverse("submissions:upload-corpus")
    assert ["the corpus little" in one.client.get(page).content.decode() for one in (sender, other)] == [True, False]
    assert sender.client.post(reverse("submissions:discard-upload", args=[Upload.objects.get().pk])).url == page
    assert Upload.objects.get().state == "abandoned"


def test_import_that_may_not_start_when_all_has_arrived_starts_later(sender, organizer, archive, tmp_path):
    address = begin(sender, len(archive))["Location"]
    under_way = start_import(folder=str(tmp_path), name="little", by=organizer)
    answer = sender.send(address, 0, archive)
    assert (answer.status_code, "is under way already" in sentence(answer)) == (403, True)
    assert sender.state(address)["state"] == "refused"
    Job.objects.filter(pk=under_way.pk).update(state=JobState.CANCELLED)
    answer = sender.client.post(reverse("submissions:submit-upload", args=[Upload.objects.get().pk]))
    job = Job.objects.latest("created_at")
    assert (answer.url, job.parameters["folder"]) == (job.get_absolute_url(), "little.zip")


def test_disk_keeps_room_for_others_and_the_archive_waits_for_another_attempt(sender, archive, monkeypatch):
    state = upload(sender, archive)
    monkeypatch.setattr(handlers, "SPARE_BYTES", 1 << 60)
    job = run(state)
    assert (job.state, job.failure_actor) == (JobState.FAILED, "operator")
    assert job.failure.startswith("The portal's disk is full: at “Unpacking the archive (MB)”")
    assert (upload_path(Upload.objects.get()).exists(), list(unpacking_folder().glob("*"))) == (True, [])
    monkeypatch.undo()
    Job.objects.update(state=JobState.WAITING)
    assert run(state).state == JobState.SUCCEEDED


def test_archive_of_an_import_that_ended_is_removed_in_time(sender, archive):
    state = upload(sender, archive)
    received = Upload.objects.get()
    Upload.objects.update(expires_at=timezone.now() - timedelta(days=1))
    unpacking_folder(state["job"]["id"]).mkdir(parents=True)
    os.utime(upload_path(received), (0, 0))
    tidy_unpacked()
    assert (remove_strays(settings.UPLOAD_DIR), unpacking_folder(state["job"]["id"]).exists()) == (0, True)
    Job.objects.update(state=JobState.CANCELLED)
    tidy_unpacked()
    assert (remove_strays(settings.UPLOAD_DIR), unpacking_folder(state["job"]["id"]).exists()) == (1, False)
    Job.objects.update(state=JobState.WAITING)
    assert run(state).failure == "The archive little.zip is no longer here. Nothing was changed."


def test_same_archive_is_found_again_and_imported_once(sender, archive):
    sha256 = hashlib.sha256(archive).hexdigest()
    answer = begin(sender, len(archive), sha256=sha256)
    sender.send(answer["Location"], 0, archive[:100])
    again = begin(sender, len(archive), sha256=sha256)
    assert (again.status_code, again["Location"], again["Upload-Offset"]) == (200, answer["Location"], "100")
    sender.send(answer["Location"], 100, archive[100:])
    assert begin(sender, len(archive), sha256=sha256)["Location"] == answer["Location"]  # being imported
    run(sender.state(answer["Location"]))
    assert begin(sender, len(archive), sha256=sha256)["Location"] == answer["Location"]  # imported
    Corpus.objects.get().delete()
    assert begin(sender, len(archive), sha256=sha256).status_code == 201
