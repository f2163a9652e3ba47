"""An edition leaves a portal as a folder and comes to another one: same pages, numbers, files; without people."""

import gzip
import html
import json
import re
import shutil

import pytest
from django.conf import settings as portal_settings
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from listening.app.models import Answer, Participant, Session, Study
from listening.app.results.inputs import changed_parts, compute_basis
from portal.accounts.models import User
from portal.challenges.models import Corpus, DataSet, Edition, Utterance
from portal.core.models import AuditEvent
from portal.core.removal import list_held_files
from portal.core.storage import read_stored
from portal.jobs.models import Job
from portal.operations.backup.services import verify_portal
from portal.submissions.models import Submission, SubmittedFile, System
from portal.teams.models import Team
from tests.listening.analysis.examples import made_up_results
from tests.listening.factories import make_session, make_study
from tests.listening.results.analysed import add_analysis, publish_study
from tests.listening.watched import finished_session
from tests.portal.api.calls import Challenge
from tests.portal.backups import ignore
from tests.portal.factories import (
    add_files,
    make_corpus,
    make_edition,
    make_job,
    make_organizer,
    make_submission,
    make_team,
    make_team_system,
)
from tests.portal.leaderboards import put_on_leaderboard

pytestmark = pytest.mark.django_db(transaction=True)
SECRETS = ("hidden-person", "Hidden Contact", "hidden@test.example", "hidden-device", "Hidden Lab")


@pytest.fixture(autouse=True)
def empty_storage(settings, tmp_path_factory):
    move_storage(settings, tmp_path_factory.mktemp("files"))


def move_storage(settings, place):
    own = settings.STORAGES["default"] | {"OPTIONS": {"location": place}}
    settings.STORAGES = settings.STORAGES | {"default": own}


@pytest.fixture
def challenge():
    """A published challenge with a closed listening test, its analysis, and people that nobody else is to know."""
    made = Challenge()
    Team.objects.update(contact="Hidden Contact", contact_email="hidden@test.example")
    put_on_leaderboard(make_team_system(made.rival_team), eer=30.0, wer=9.5)
    study = make_study(edition=made.edition, name="heard", responsible="Hidden Lab", evaluators=2)
    finished_session(study)
    Session.objects.update(device={"name": "hidden-device"})
    Participant.objects.update(platform_id="hidden-person")
    preview = make_session(study, is_preview=True)
    assert preview.participant_id
    Study.objects.update(state=Study.State.CLOSED, closed_at=timezone.now())
    study.refresh_from_db()
    add_analysis(study, made_up_results())
    publish_study(study)
    Job.objects.filter(state__in=["waiting", "running"]).update(state="cancelled", finished_at=timezone.now())
    made.study = study
    return made


@pytest.fixture
def small():
    """An edition with one submission and its recordings."""
    corpus = make_corpus("tones")
    edition = make_edition(corpus, name="vpc")
    submission = make_submission(make_team_system(make_team(edition)))
    add_files(submission)
    return edition


def export(folder, *given):
    call_command("export", "vpc", str(folder), *given)
    return folder


def empty_portal(settings, place):
    """Another portal: no rows but those of an organizer, no files."""
    call_command("flush", interactive=False, verbosity=0)
    move_storage(settings, place)
    return make_organizer(email="other@test.example")


def read_in(folder):
    call_command("import", str(folder), "--organizer", "other@test.example")
    return Edition.objects.get(name="vpc")


def show(organizer):
    """What an organizer reads of the edition on pages, in downloads and by the API: words and numbers, no addresses."""
    client = Client()
    client.force_login(organizer)
    systems = list(System.objects.order_by("name"))
    addresses = ["/editions/vpc/leaderboard/"]
    addresses += [f"/editions/vpc/leaderboard/leaderboard.{one}" for one in ("csv", "json", "tex")]
    addresses += ["/api/editions/vpc/leaderboard", "/editions/vpc/leaderboard/recipe/", "/listening-tests/"]
    addresses += ["/studies/heard/results/"]
    for system in systems:
        of_system = ("", "objective.csv", "values.csv", "attacks/", "attacks/numbers.csv", "recognition/", "trainings/")
        of_system += ("recognition/rates.csv", "recognition/utterances.csv", "recognition/phones.csv")
        addresses += [f"/systems/{system.name}/{one}" for one in of_system]
        addresses += [
            f"/systems/{system.name}/sets/{one.name}/measures.csv" for one in DataSet.objects.order_by("name")
        ]
    shown = {one: read(client.get(one)) for one in addresses}
    for submission in Submission.objects.order_by("system__name", "version"):
        shown[str(submission)] = read(client.get(f"/submissions/{submission.pk}/"))
        for document in submission.documents.order_by("path"):
            address = f"/submissions/{submission.pk}/documents/{document.pk}/"
            shown[f"{submission} {document.path}"] = read(client.get(address))
    return shown


def read(response):
    if response.status_code != 200:
        return str(response.status_code)
    text = b"".join(response.streaming_content) if response.streaming else response.content
    if "html" in response.headers["Content-Type"]:
        page = text.decode().partition("<main")[2].partition("</main>")[0]
        page = re.sub(r"<(script|template|svg)\b.*?</\1>", "", page, flags=re.DOTALL)
        text = " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split()).encode()
    words = re.sub(r"Uploaded by .{1,60}? Begun", "", text.decode(errors="replace"))  # people stay behind
    return re.sub(r"(?<=[Rr]un |ing |ned-)\d+|/\d+(?=[/\",])|\"(id|run|submission)\": ?\d+", "N", words)


def test_pages_and_numbers_are_the_same_in_another_portal(challenge, settings, tmp_path, tmp_path_factory):
    before = show(challenge.organizer)
    assert sum(text not in ("404", "302") for text in before.values()) > 20
    folder = export(tmp_path / "vpc")
    empty_portal(settings, tmp_path_factory.mktemp("other"))
    make_submission(make_team_system(make_team(make_edition(name="elsewhere"), name="First")))
    edition = read_in(folder)
    after = show(edition.organizers.get())
    System.objects.filter(edition__name="elsewhere").delete()
    assert {name: text for name, text in after.items() if name in before} == before


def test_files_are_the_same_and_complete_in_another_portal(challenge, settings, tmp_path, tmp_path_factory):
    keys = {key for _, key in list_held_files()}
    contents = {key: read_stored(key) for key in keys}
    weights = read_stored(f"derived/attacks/{challenge.attack.pk}/results.zip")
    folder = export(tmp_path / "vpc")
    empty_portal(settings, tmp_path_factory.mktemp("other"))
    read_in(folder)
    assert {key: read_stored(key) for _, key in list_held_files()} == contents
    assert verify_portal(progress=ignore).problems.report() == ()
    submission = System.objects.get(name=challenge.system.name).submissions.get()
    run = submission.evaluation_runs.filter(kind="attack").get()
    assert read_stored(f"derived/attacks/{run.pk}/results.zip") == weights is not None


def test_nobody_leaves_with_the_edition(challenge, settings, tmp_path, tmp_path_factory):
    secrets = {one.token for one in Session.objects.all()} | {one.withdrawal_code for one in Session.objects.all()}
    secrets |= {one.person_key for one in Participant.objects.all()} | {challenge.study.link_key}
    secrets |= {one.email for one in User.objects.all()} | set(SECRETS)
    folder = export(tmp_path / "vpc")
    rows = gzip.decompress((folder / "rows.jsonl.gz").read_bytes()).decode()
    assert [one for one in secrets if one in rows] == []
    assert oct(folder.stat().st_mode & 0o777) == "0o700"
    answers = list(Answer.objects.order_by("pk").values_list("task", "rating", "received_at"))
    organizer = empty_portal(settings, tmp_path_factory.mktemp("other"))
    edition = read_in(folder)
    assert list(User.objects.all()) == [organizer] == list(edition.organizers.all())
    assert list(Answer.objects.order_by("pk").values_list("task", "rating", "received_at")) == answers != []
    assert not Session.objects.filter(is_preview=True).exists()
    assert len({one.token for one in Session.objects.all()} - secrets) == Session.objects.count() == 1
    assert Team.objects.filter(memberships=None, contact="", contact_email="").count() == Team.objects.count() == 2
    client = Client()
    client.force_login(organizer)
    page = client.get(Team.objects.get(name="Alder").get_absolute_url()).content.decode()
    assert "none: the team came with an edition of another portal" in page
    assert "No members." in page
    event = AuditEvent.objects.get(action="edition.imported")
    assert (event.subject, event.actor) == (str(edition), organizer)


def test_analysis_knows_what_changed_since_as_it_did_before(challenge, settings, tmp_path, tmp_path_factory):
    folder = export(tmp_path / "vpc")
    empty_portal(settings, tmp_path_factory.mktemp("other"))
    read_in(folder)
    study = Study.objects.get()
    assert study.published_analysis == study.analyses.get()
    assert changed_parts(study.published_analysis.basis, compute_basis(study)) == []


def test_folder_without_audio_has_no_recording(challenge, settings, tmp_path, tmp_path_factory):
    audio = set(SubmittedFile.objects.values_list("audio", flat=True)) | set(
        Utterance.objects.values_list("audio", flat=True)
    )
    before = show(challenge.organizer)
    folder = export(tmp_path / "vpc", "--without-audio")
    listed = [json.loads(line)["path"] for line in (folder / "files.jsonl").read_text().splitlines()]
    assert audio & set(listed) == set()
    assert [one for one in listed if one.endswith((".flac", ".wav"))] == []
    empty_portal(settings, tmp_path_factory.mktemp("other"))
    edition = read_in(folder)
    after = show(edition.organizers.get())
    for part in ("leaderboard.csv", "leaderboard.json"):
        name = f"/editions/vpc/leaderboard/{part}"
        assert after[name] == before[name]
    assert verify_portal(progress=ignore).problems.report() == ()


def test_corpus_that_is_here_already_is_used(small, settings, tmp_path):
    folder = export(tmp_path / "vpc")
    utterances = Utterance.objects.count()
    small.name = "vpc-old"
    small.save()
    for index, system in enumerate(System.objects.all()):
        System.objects.filter(pk=system.pk).update(name=f"old-{index}")
    make_organizer(email="other@test.example")
    edition = read_in(folder)
    assert (edition.corpus, Utterance.objects.count()) == (small.corpus, utterances)
    assert edition.corpus.created_by != edition.organizers.get()
    assert Submission.objects.filter(system__edition=edition).count() == 1
    files = SubmittedFile.objects.filter(submission__system__edition=edition)
    assert {one.utterance.corpus for one in files} == {small.corpus}


def test_other_corpus_of_this_name_is_refused_with_its_differences(small, settings, tmp_path, tmp_path_factory):
    folder = export(tmp_path / "vpc")
    empty_portal(settings, tmp_path_factory.mktemp("other"))
    Corpus.objects.create(name="tones", layout="manifest", source="elsewhere")
    with pytest.raises(CommandError, match=r"The corpus tones here is another one\. It differs in: speaker .* more."):
        read_in(folder)
    assert (Edition.objects.count(), Job.objects.count()) == (0, 0)


def test_all_missing_and_changed_files_are_listed_at_once(small, settings, tmp_path, tmp_path_factory, capsys):
    folder = export(tmp_path / "vpc")
    gone, changed = sorted(path for path in folder.glob("content/*/*"))[:2]
    gone.unlink()
    changed.write_bytes(b"other")
    empty_portal(settings, tmp_path_factory.mktemp("other"))
    with pytest.raises(CommandError, match=r"is not as it was exported\. Nothing was imported."):
        read_in(folder)
    said = capsys.readouterr().err.splitlines()
    assert [line for line in said if line.startswith(f"content/{gone.name[:2]}/{gone.name}: ") and "none" in line]
    assert [line for line in said if line.startswith(f"content/{changed.name[:2]}/{changed.name}: ")]
    assert (len([line for line in said if "Export the edition again" in line]), Edition.objects.count()) == (2, 0)


def test_changed_rows_are_refused(small, settings, tmp_path, tmp_path_factory, capsys):
    folder = export(tmp_path / "vpc")
    (folder / "rows.jsonl.gz").write_bytes(gzip.compress(b"{}"))
    empty_portal(settings, tmp_path_factory.mktemp("other"))
    with pytest.raises(CommandError, match="Nothing was imported"):
        read_in(folder)
    assert "\nrows.jsonl.gz: expected content " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"format": 2}, "expected format 1, found 2 of portal version"),
        ({"edition": 5}, "expected a description of an edition"),
        (None, "found no edition.json"),
    ],
)
def test_folder_of_another_format_is_refused(change, sentence, small, tmp_path):
    folder = export(tmp_path / "vpc")
    file = folder / "edition.json"
    if change is None:
        file.unlink()
    else:
        file.write_text(json.dumps(json.loads(file.read_text()) | change))
    make_organizer(email="other@test.example")
    with pytest.raises(CommandError, match=sentence):
        read_in(folder)


def test_edition_whose_name_exists_is_refused(small, tmp_path):
    folder = export(tmp_path / "vpc")
    make_organizer(email="other@test.example")
    with pytest.raises(CommandError, match="There is an edition vpc here already"):
        read_in(folder)
    Edition.objects.update(name="other")
    with pytest.raises(CommandError, match="There is a system of this name here already: "):
        read_in(folder)
    assert Edition.objects.count() == 1


def test_import_that_fails_late_leaves_no_row(small, settings, tmp_path, tmp_path_factory, monkeypatch):
    from portal.operations.backup import edition as module

    folder = export(tmp_path / "vpc")
    empty_portal(settings, tmp_path_factory.mktemp("other"))
    with monkeypatch.context() as patched:

        def fail(*_):
            raise OSError(28, "No space left on device")

        patched.setattr(module, "_store_files_of_runs", fail)
        with pytest.raises(CommandError, match="No space left on device"):
            read_in(folder)
    assert (Edition.objects.count(), Job.objects.count(), Corpus.objects.count()) == (0, 0, 0)
    assert read_in(folder).title == small.title


def test_edition_in_use_is_not_exported(small, tmp_path):
    make_study(edition=small, name="heard")
    with pytest.raises(CommandError, match=r"The listening test heard is open\. Close it first."):
        export(tmp_path / "a")
    Study.objects.update(state=Study.State.CLOSED)
    job = make_job("running", edition="vpc")
    with pytest.raises(CommandError, match="One job of the edition is waiting"):
        export(tmp_path / "b")
    job.delete()
    assert (export(tmp_path / "b") / "edition.json").is_file()  # what was refused left nothing in the way
    with pytest.raises(CommandError, match=r"There is no edition nothing\. Editions: vpc"):
        call_command("export", "nothing", str(tmp_path / "c"))
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "file").touch()
    with pytest.raises(CommandError, match="expected an empty folder or none"):
        export(tmp_path / "d")


def test_missing_file_is_named_and_the_folder_cannot_be_imported(small, tmp_path, capsys):
    key = SubmittedFile.objects.values_list("audio", flat=True)[0]
    shutil.rmtree(portal_settings.STORAGES["default"]["OPTIONS"]["location"] / "content" / key.split("/")[1])
    with pytest.raises(CommandError, match="is not complete and cannot be imported"):
        export(tmp_path / "vpc")
    assert f"files/{key}: expected a file that a row names, found none." in capsys.readouterr().err
    make_organizer(email="other@test.example")
    with pytest.raises(CommandError, match=r"found no edition\.json"):
        read_in(tmp_path / "vpc")


def test_import_needs_an_organizer(small, tmp_path):
    with pytest.raises(CommandError, match=r"There is no organizer with the address nobody@test.example here"):
        call_command("import", str(tmp_path), "--organizer", "nobody@test.example")
