"""What is archived leaves the lists and comes back; what is deleted goes with everything that cannot be without it."""

import os

import pytest
from django.core.files.storage import default_storage
from django.urls import reverse
from django.utils import timezone

from common.errors import NotPossible
from evaluation.app.audio_measures.services import start_measures
from evaluation.app.models import EvaluationRun
from listening.app.models import Study
from listening.app.results.services import start_analysis, unpublish_results
from listening.app.studies import services as study_services
from portal.challenges.models import Corpus, Edition, Utterance
from portal.core.models import AuditEvent, UnneededFile
from portal.core.storage import adopt_file, delete_old, store_bytes
from portal.deletion import files, services
from portal.jobs.models import Job
from portal.jobs.runner import JobContext, JobReleased, execute
from portal.jobs.services import request_cancel
from portal.leaderboard.services import freeze_leaderboard, publish_leaderboard
from portal.submissions.models import SharedPart, Submission, SubmittedFile, System, Upload
from portal.submissions.services import check_again, release_parts
from portal.teams.models import Team
from tests.listening.edition_factories import make_draft, make_edition_with_speech
from tests.listening.factories import make_study
from tests.listening.results.answered import make_answered
from tests.portal.factories import (
    add_files,
    make_corpus,
    make_edition,
    make_job,
    make_operator,
    make_organizer,
    make_submission,
    make_system,
    make_team,
    make_team_system,
    make_user,
    store_tone,
)

pytestmark = pytest.mark.django_db
State = Submission.State


@pytest.fixture
def organizer(client):
    person = make_organizer()
    client.force_login(person)
    return person


KINDS = {
    Edition: "editions",
    Corpus: "corpora",
    System: "systems",
    Submission: "submissions",
    Team: "teams",
    Study: "studies",
}


def address(thing, action="thing"):
    return reverse(f"deletion:{action}", args=[KINDS[type(thing)], thing.pk])


def started(answer):
    """The job to whose page an answer leads."""
    return Job.objects.get(pk=answer.url.rstrip("/").rsplit("/", 1)[-1])


def delete(thing, by=None, **given):
    return services.delete(thing=thing, by=by, patience_s=0, **given)


def age(*keys):
    """Stored files as if they had been stored long ago."""
    for key in keys:
        os.utime(default_storage.path(key), (0, 0))


def make_failed_attempt(organizer):
    """An edition with a refused submission of a team, a baseline, an upload, jobs and a study in draft."""
    edition = make_edition(make_corpus(), organizers=[organizer])
    team = make_team(edition)
    upload = Upload.objects.create(edition=edition, team=team, file_name="a.zip", size=1, expires_at=timezone.now())
    refused = make_submission(make_team_system(team), State.REFUSED, upload=upload)
    refused.documents.create(path="a.pdf", kind="description", key=store_bytes(b"a", ".document"), bytes=1)
    refused.job = make_job("failed", edition=edition.name, kind="intake")
    refused.save()
    make_job("succeeded", edition=edition.name, after=refused.job)
    baseline = System.objects.create(name="b", label="B", title="B", corpus=edition.corpus, edition=edition)
    add_files(baseline.submissions.create(version=1), store_tone(300))
    start_measures(submission=baseline.submissions.get(), data_set=edition.corpus.data_sets.first())
    make_study(edition=edition, state="draft")
    return edition


def test_failed_challenge_is_deleted_whole(client, organizer, django_capture_on_commit_callbacks):
    edition = make_failed_attempt(organizer)
    other = make_submission(make_team_system(make_team(make_edition(edition.corpus))))
    kept = Utterance.objects.first().audio
    made = SubmittedFile.objects.first().audio
    new = store_bytes(b"a", ".document")
    age(kept, made)
    page = client.get(address(edition))
    assert page.context["counts"] | {"teams": 1, "systems": 4, "submissions": 4} == page.context["counts"]
    assert client.post(address(edition), {"typed": "another"}).status_code == 422
    with django_capture_on_commit_callbacks(execute=True):
        answer = client.post(address(edition), {"typed": edition.title})
    receipt = client.get(answer.url)
    assert (receipt.status_code, edition.title in receipt.content.decode()) == (200, True)
    assert list(Edition.objects.all()) == [other.system.edition]
    assert list(Submission.objects.all()) == [other]
    assert (Job.objects.count(), Upload.objects.count(), EvaluationRun.objects.count()) == (0, 0, 0)
    assert Corpus.objects.count() == 1
    assert [default_storage.exists(key) for key in (kept, made, new)] == [True, False, True]
    assert "Stored files are deleted within a day" in receipt.content.decode()
    age(*UnneededFile.objects.values_list("key", flat=True))
    files.clean_up_files()
    assert (default_storage.exists(new), UnneededFile.objects.exists()) == (False, False)
    assert client.get(edition.get_absolute_url()).status_code == 404


def test_file_that_another_row_names_is_kept(organizer):
    system, other = make_system(make_corpus()), make_system(Corpus.objects.get(), "copy")
    audio = other.submissions.get().files.first().audio
    delete(system, organizer)
    age(audio)
    files.clean_up_files()
    assert (default_storage.exists(audio), System.objects.get()) == (True, other)
    assert not UnneededFile.objects.exists()


def test_file_that_is_stored_again_is_kept_until_its_rows_come(tmp_path, monkeypatch):
    """An import finds its file there, writes nothing, and its rows come only at its end."""
    keys = [store_bytes(content, ".flac") for content in (b"written", b"moved", b"staged long ago", b"of nobody")]
    UnneededFile.objects.bulk_create(UnneededFile(key=key) for key in keys)
    age(*keys)
    store_bytes(b"written", ".flac")
    staged = tmp_path / "staged"
    staged.write_bytes(b"moved")
    adopt_file(staged, keys[1])
    default_storage.delete(keys[2])
    staged.write_bytes(b"staged long ago")
    os.utime(staged, (0, 0))
    adopt_file(staged, keys[2])
    monkeypatch.setattr(files, "AT_ONCE", 1)
    files.clean_up_files()
    assert [default_storage.exists(key) for key in keys] == [True, True, True, False]
    assert UnneededFile.objects.count() == 3
    assert (delete_old(keys[0], 1.0), default_storage.exists(keys[0])) == (False, True)


def test_large_thing_is_deleted_by_a_job_that_goes_on_where_it_was_stopped(client, organizer, monkeypatch):
    monkeypatch.setattr(services, "AT_ONCE_AT_MOST", 10)
    monkeypatch.setattr(services, "BATCH", 3)
    edition = make_failed_attempt(organizer)
    delete(edition, organizer)
    corpus = Corpus.objects.get()
    Corpus.objects.update(created_by=organizer)
    make_system(corpus)
    counts = services.preview(corpus)["counts"]
    job = started(client.post(address(corpus), {"typed": str(corpus)}))
    assert started(client.post(address(corpus), {"typed": str(corpus)})) == job
    assert "It is being deleted" in client.get(address(corpus)).content.decode()

    def stop_at_the_third(*told):
        if told[2] >= 9:
            raise JobReleased

    monkeypatch.setattr(JobContext, "progress", stop_at_the_third)
    assert execute(job.pk).state == "waiting"
    monkeypatch.undo()
    rest = sum(services.preview(corpus)["counts"].values())
    assert 0 < rest < sum(counts.values())
    client.post(address(corpus, "restore"))
    corpus.refresh_from_db()
    assert corpus.archived_at is not None, "half of it is gone"
    ended = execute(job.pk)
    receipt = AuditEvent.objects.get(pk=ended.result["receipt"])
    assert (ended.state, receipt.data["counts"], receipt.actor) == ("succeeded", counts, organizer)
    assert not any(model.objects.exists() for model in (Corpus, System, SubmittedFile, Utterance))
    assert f"receipts/{receipt.pk}" in client.get(ended.get_absolute_url()).content.decode()
    Job.objects.update(state="waiting")
    assert execute(job.pk).result == ended.result, "killed between the receipt and the end of the job"
    client.force_login(make_organizer())
    assert client.get(ended.get_absolute_url()).status_code == 404


def test_large_deletion_is_told_to_other_organizers_and_undone_before_it_deletes(client, organizer, monkeypatch):
    monkeypatch.setattr(services, "AT_ONCE_AT_MOST", 0)
    other = make_organizer()
    edition = make_edition(make_corpus(), organizers=[organizer, other])
    submission = make_submission(make_team_system(make_team(edition)), State.REFUSED)
    asked = (address(edition), {"typed": edition.title})
    refused = started(client.post(*asked))
    client.force_login(other)
    answer = client.post(*asked, follow=True)
    assert (answer.status_code, "Show the job" in answer.content.decode()) == (200, False)
    assert f"{edition} is being deleted." in answer.content.decode()
    with pytest.raises(NotPossible, match="is being deleted"):
        check_again(submission=submission, by=other)
    Edition.objects.filter(pk=edition.pk).update(published_at=timezone.now())
    assert execute(refused.pk).state == "failed"
    Edition.objects.filter(pk=edition.pk).update(published_at=None)
    client.post(address(edition, "restore"))
    assert (Edition.objects.get().archived_at, Job.objects.count()) == (None, 0)
    request_cancel(started(client.post(*asked)), by=other)
    client.post(address(edition, "restore"))
    assert (Edition.objects.get().archived_at, Job.objects.count()) == (None, 0)


@pytest.mark.parametrize("was", ["unpublished", "accepted"])
def test_edition_with_results_is_archived_not_deleted(was, client, organizer):
    edition = make_edition(make_corpus(), organizers=[organizer])
    if was == "unpublished":
        fields = {"subject_type": "challenges.edition", "subject_id": str(edition.pk), "subject": "x"}
        AuditEvent.objects.create(action="board.published", **fields)
    else:
        make_submission(make_team_system(make_team(edition)), State.ACCEPTED)
    answer = client.post(address(edition), {"typed": edition.title})
    assert (answer.status_code, Edition.objects.filter(pk=edition.pk).exists()) == (302, True)
    assert "cannot be deleted" in client.get(answer.url).content.decode()


def test_archived_edition_leaves_the_lists_and_comes_back(client, organizer, mailoutbox):
    edition = make_edition(make_corpus(), organizers=[organizer])
    team = make_team(edition)
    asked = client.get(address(edition)).content.decode()
    assert "Its systems and listening tests leave the lists with it." in asked
    assert "<dt>Teams</dt><dd>1</dd>" in asked
    client.post(address(edition, "archive"))
    assert "It is archived already." in client.post(address(edition, "archive"), follow=True).content.decode()
    lists = [reverse("editions:list"), reverse("studies:new"), "/api/editions/"]
    assert [edition.title in client.get(one).content.decode() for one in lists] == [False] * 3
    for one in ("studies:new", "studies:list"):
        told = client.get(reverse(one)).content.decode()
        assert "Every edition with a corpus that you organise is archived. Restore one" in told
        assert 'name="title"' not in told
    home = client.get(reverse("home")).content.decode()
    assert ("Archived: <a" in home, "Steps of" in home) == (True, False)
    assert edition.title in client.get(reverse("deletion:index")).content.decode()
    client.logout()
    assert client.get(edition.get_absolute_url()).status_code == 200
    client.force_login(team.memberships.get().user)
    assert f"{edition}: the edition is archived" in client.get(reverse("home")).content.decode()
    execute(Job.objects.get(kind="send-notice").pk)
    [letter] = mailoutbox
    assert (letter.to, "the edition was archived" in letter.subject) == ([team.memberships.get().user.email], True)
    assert f"{edition} is archived: it has left the lists" in letter.body
    assert "archived" in client.get(edition.get_absolute_url()).content.decode()
    client.force_login(organizer)
    client.post(address(edition, "restore"), follow=True)
    assert [edition.title in client.get(one).content.decode() for one in lists] == [True] * 3
    assert "Archived: <a" not in client.get(reverse("home")).content.decode()


def test_corpus_of_an_edition_stays(client):
    owner = make_organizer()
    corpus = make_corpus(created_by=owner)
    edition = make_edition(corpus)
    with pytest.raises(NotPossible, match=rf"^Needed by the edition “{edition}”\. Delete it first"):
        delete(corpus, owner)


def test_running_job_is_told_to_stop_and_nothing_is_deleted_meanwhile(organizer):
    system = make_system(make_corpus())
    run = start_measures(submission=system.submissions.get(), data_set=system.corpus.data_sets.first())
    Job.objects.filter(pk=run.job_id).update(
        state="running", claim=run.job_id, heartbeat_at=timezone.now(), started_at=timezone.now()
    )
    with pytest.raises(NotPossible, match="told to stop"):
        delete(system, organizer)
    assert Job.objects.get().cancel_requested_at is not None
    Job.objects.update(state="cancelled")
    delete(system, organizer)
    assert (Job.objects.count(), System.objects.count()) == (0, 0)


def test_submission_that_another_rests_on_stays(organizer):
    edition = make_edition(organizers=[organizer])
    first = make_submission(make_team_system(make_team(edition)), State.WITHDRAWN)
    make_submission(first.system, State.ACCEPTED, inherits=first)
    with pytest.raises(NotPossible, match=r"^Needed by the submission “.* version 2”"):
        delete(first, organizer)


def test_system_that_is_heard_stays_until_its_study_is_deleted(organizer):
    study = make_study(organizer=organizer, state="closed")
    system = study.systems.first().submission.system
    with pytest.raises(NotPossible, match=r"^Needed by the listening test “"):
        delete(system, organizer)
    delete(study, organizer)
    delete(system, organizer)
    assert not System.objects.filter(pk=system.pk).exists()


def test_what_a_listening_test_plays_does_not_go_with_its_team_or_its_corpus(organizer):
    edition = make_edition(make_corpus(), organizers=[organizer])
    submission = make_submission(make_team_system(make_team(edition)), State.WITHDRAWN)
    study = make_study(organizer=organizer, state="closed")
    study.conditions.create(submission=submission, code="x")
    with pytest.raises(NotPossible, match=r"^Needed by the listening test “"):
        delete(submission.system.team, organizer)
    corpus = study.edition.corpus
    Edition.objects.filter(corpus=corpus).update(corpus=None)
    System.objects.filter(corpus=corpus).update(corpus=None)
    with pytest.raises(NotPossible, match=r"^Needed by the listening test “"):
        delete(corpus, organizer)
    study.refresh_from_db()
    assert study.systems.filter(submission=submission).exists()


def test_study_whose_results_were_published_is_archived_not_deleted(organizer):
    study = make_study(organizer=organizer, state="closed")
    study.published_analysis, study.results_published_at = study.analyses.create(), timezone.now()
    study.save()
    fields = {"subject_type": "listening.study", "subject_id": str(study.pk), "subject": "x"}
    AuditEvent.objects.create(action="study.results_published", **fields)
    unpublish_results(study=study, by=organizer)
    for thing in (study, study.edition):
        with pytest.raises(NotPossible, match="were published"):
            delete(thing, organizer)


def test_each_may_do_what_is_theirs(client):
    organizer, owner, leader, member = make_organizer(), make_organizer(), make_user(), make_user()
    edition = make_edition(make_corpus(created_by=owner), organizers=[organizer])
    make_corpus("former", created_by=leader)
    team = make_team(edition, owner=leader, members=[member])
    system = make_team_system(team)
    submission = make_submission(system, State.REFUSED)
    baseline = make_system(edition.corpus)
    study = make_study(organizer=organizer, state="draft")
    things = [edition, edition.corpus, system, submission, team, study]
    may = {
        organizer: [edition, system, submission, team, study],
        owner: [edition.corpus],
        leader: [],
        member: [],
        make_organizer(): [],
        make_operator(): things,
    }
    for person, expected in may.items():
        client.force_login(person)
        assert [thing for thing in things if client.get(address(thing)).status_code in {200, 302}] == expected
        edited = {reverse("systems:edit", args=[system.name]), reverse("corpora:edit", args=["tones"])}
        found = {page for page in edited if client.get(page).status_code == 200}
        assert len(found) == (system in expected or person == leader) + (edition.corpus in expected)
    client.force_login(organizer)
    assert client.get(address(baseline)).status_code == 404
    client.force_login(leader)
    assert client.post(reverse("systems:edit", args=[system.name]), {"title": "Ours"}).status_code == 302
    assert client.post(address(system, "archive")).status_code == 404
    assert client.get(reverse("deletion:thing", args=["nothing", 1])).status_code == 404
    assert client.get(address(Corpus.objects.get(name="former"))).status_code == 404


def test_receipt_is_for_who_deleted_and_who_organizes(client, organizer):
    other = make_organizer()
    edition = make_edition(organizers=[organizer, other])
    team = make_team(edition)
    receipt = delete(team, organizer)
    found = {}
    for person in (organizer, other, make_organizer(), make_operator()):
        client.force_login(person)
        found[person] = client.get(reverse("deletion:receipt", args=[receipt.pk])).status_code
    assert list(found.values()) == [200, 200, 404, 200]
    client.force_login(organizer)
    trail = client.get(reverse("editions:audit", args=[edition.name])).content.decode()
    assert ("Team: deleted" in trail, "edition pk" in trail) == (True, False)
    name = edition.name
    Edition.objects.filter(pk=edition.pk).update(name="renamed")
    another = make_organizer()
    make_edition(name=name, organizers=[another])
    assert "Team: deleted" in client.get(reverse("editions:audit", args=["renamed"])).content.decode()
    client.force_login(other)
    assert client.get(reverse("deletion:receipt", args=[receipt.pk])).status_code == 200
    client.force_login(another)
    assert client.get(reverse("deletion:receipt", args=[receipt.pk])).status_code == 404
    assert "Team: deleted" not in client.get(reverse("editions:audit", args=[name])).content.decode()


def test_demo_is_removed_with_its_published_results(client):
    operator = make_operator()
    client.force_login(operator)
    corpus = make_corpus("demo", is_synthetic=True)
    assert "Delete the demo data" not in client.get(reverse("deletion:index")).content.decode()
    corpus.source = str(services.DEMO_CORPUS)
    corpus.save()
    assert "Delete the demo data" not in client.get(reverse("deletion:index")).content.decode()  # imported for another
    edition = make_edition(corpus, name="demo", published_at=timezone.now())
    make_study(edition=edition)
    make_submission(make_team_system(make_team(edition)))
    make_system(corpus)
    other = make_edition(make_corpus("own"))
    assert "Delete the demo data" in client.get(reverse("deletion:index")).content.decode()
    client.post(reverse("deletion:delete-demo"))
    assert (list(Edition.objects.all()), list(Corpus.objects.all())) == ([other], [other.corpus])
    assert "Delete the demo data" not in client.get(reverse("deletion:index")).content.decode()


@pytest.mark.parametrize("thing", ["submissions.submission", "challenges.corpus"])
def test_nothing_begins_to_use_a_submission_that_is_being_deleted(organizer, thing):
    edition = make_edition_with_speech(organizer=organizer)
    submission = Submission.objects.filter(system__edition=edition).select_related("system").first()
    system = submission.system
    system.team = make_team(edition)
    system.save()
    study = make_draft(edition)
    number = {"submissions.submission": submission.pk, "challenges.corpus": edition.corpus_id}[thing]
    job = make_job(kind="delete", parameters={"thing": thing, "number": number})
    now = timezone.now()
    given = {"by": organizer, "now": now}
    part = SharedPart(submission=submission, file=submission.files.first())
    part.save()
    uses = {
        "checking": lambda: check_again(submission=submission, by=organizer),
        "plan": lambda: study_services.create_study(
            edition=edition, by=organizer, systems=[submission], data_sets=[], name="other", title="Other"
        ),
        "design": lambda: study_services.start_design(study, organizer),
        "evaluation": lambda: start_measures(
            submission=submission, data_set=edition.corpus.data_sets.filter(role="trial").first(), by=organizer
        ),
        "samples": lambda: release_parts(submissions=[submission], **given),
        "board": lambda: freeze_leaderboard(edition=edition, at=now, **given),
        "publication": lambda: publish_leaderboard(edition=edition, **given),
    }
    for name, use in uses.items():
        with pytest.raises(NotPossible, match=f"^{submission} is being deleted"):
            use()
        assert Job.objects.count() == 1, name
    Job.objects.filter(pk=job.pk).update(state="failed")
    assert freeze_leaderboard(edition=edition, at=now, **given).frozen_at == now


def test_no_analysis_begins_while_a_system_that_was_heard_is_being_deleted(organizer):
    study = make_answered(evaluators=1, trials=2)
    submission = study.systems.first().submission
    make_job(kind="delete", parameters={"thing": "submissions.submission", "number": submission.pk})
    with pytest.raises(NotPossible, match=f"^{submission} is being deleted"):
        start_analysis(study, organizer)
