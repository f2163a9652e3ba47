"""Pages of submissions: who sees what, what stands on them, and how many queries they take."""

import csv
import io
import json

import pytest
from django.urls import reverse

from portal.core.storage import store_bytes
from portal.intake.report import Counts, IntakeReport
from portal.jobs.models import Job, JobState
from portal.submissions import services
from portal.submissions.models import Submission, SubmittedDocument
from portal.submissions.selectors import list_jobs
from portal.submissions.services import change_state
from portal.submissions.signals import submission_accepted
from tests.pages import read_page
from tests.portal.archives import DESCRIPTION
from tests.portal.factories import (
    add_files,
    make_corpus,
    make_edition,
    make_job,
    make_operator,
    make_organizer,
    make_submission,
    make_team,
    make_team_system,
    make_user,
    store_tone,
)

pytestmark = pytest.mark.django_db
S = Submission.State


@pytest.fixture
def edition(organizer):
    return make_edition(make_corpus(), organizers=[organizer], scores_required=False)


@pytest.fixture
def member():
    return make_user()


@pytest.fixture
def team(edition, member):
    return make_team(edition, members=[member])


@pytest.fixture
def submission(team):
    return make_full(make_team_system(team))


def make_full(system, state=S.REFUSED, *, hertz=300, **fields):
    """A submission with a file of each utterance, a document and a report of two problems."""
    submission = make_submission(system, state=state, **fields)
    add_files(submission, store_tone(hertz), received_as="wav/sent.wav", converted_from="44100 Hz, PCM_16, WAV")
    submission.documents.create(
        path="paper/system <b>.pdf",
        kind="description",
        key=store_bytes(DESCRIPTION, ".document"),
        bytes=len(DESCRIPTION),
    )
    report = make_report()
    submission.report = store_bytes(report.to_json().encode(), ".json")
    submission.report_summary, submission.errors, submission.warnings = report.summary(), 2, 1
    submission.save()
    change_state(submission=submission, state=state, note="2 errors, 1 warning.")
    return submission


def make_report():
    from common.problems import Problem, Severity

    cut = Problem("truncated", "wav/=cmd.wav", "9600 samples", "4000", "Send it again.", count=1)
    missing = Problem("missing", "a.wav", "a file", "none", "Add its file.")
    quiet = Problem("quiet", "b.wav", "a peak above −60 dB", "−70 dB", "Listen to it.", Severity.WARNING)
    findings = (missing, cut.within("tones_enrolls"), quiet.within("tones_enrolls"))
    return IntakeReport("archive.zip", "edition", findings, Counts(files=3), ("a",))


def page(client, user, name, *arguments):
    client.force_login(user)
    return client.get(reverse(f"submissions:{name}", args=arguments))


# The list ------------------------------------------------------------------------------------------


def listed(client, person, edition, **search):
    client.force_login(person)
    response = client.get(reverse("submissions:list", args=[edition.name]), search)
    return {one.pk for one in response.context["page"].object_list}


def test_list_is_whole_for_organizers_and_their_own_for_teams(client, edition, submission, member, organizer):
    rival = make_user()
    other = make_full(make_team_system(make_team(edition, owner=rival)))
    make_full(make_team_system(make_team(make_edition(edition.corpus), members=[member])))
    assert listed(client, organizer, edition) == {submission.pk, other.pk}
    assert listed(client, member, edition) == {submission.pk}
    assert listed(client, rival, edition) == {other.pk}
    assert listed(client, rival, edition, team=submission.system.team_id) == set()
    for person in (make_organizer(), make_operator(), make_user()):
        assert page(client, person, "list", edition.name).status_code == 404


# One submission ------------------------------------------------------------------------------------


def test_report_stands_on_the_page_by_data_set_and_cause(client, submission, member):
    response = page(client, member, "detail", submission.pk)
    text = read_page(response)
    for shown in (
        "The submission as a whole",
        "tones_enrolls",
        "Missing utterances",
        "Cut off",
        "Send it again.",
        "wav/=cmd.wav: expected 9600 samples, found 4000.",
        "Very quiet",
    ):
        assert shown in text
    assert [section.data_set for section in response.context["report"]] == ["", "tones_enrolls"]
    assert "Submit a corrected archive" in text
    later = Submission.objects.create(system=submission.system, version=submission.version + 1, state="accepted")
    text = read_page(page(client, member, "detail", submission.pk))
    assert "Submit a corrected archive" not in text
    assert f"See version {later.version}, which was accepted" in text


def test_downloads_hold_the_whole_report(client, submission, member):
    rows = list(csv.DictReader(io.StringIO(page(client, member, "report-csv", submission.pk).content.decode())))
    assert [(row["data_set"], row["severity"], row["code"], row["file"]) for row in rows] == [
        ("", "error", "missing", "a.wav"),
        ("tones_enrolls", "error", "truncated", "wav/=cmd.wav"),
        ("tones_enrolls", "warning", "quiet", "b.wav"),
    ]
    response = page(client, member, "report-json", submission.pk)
    assert json.loads(response.content) == json.loads(make_report().to_json())
    assert response["Content-Disposition"] == f'attachment; filename="{submission.system.name}-v1-report.json"'


def test_document_is_saved_and_never_shown(client, submission, member):
    response = page(client, member, "document", submission.pk, submission.documents.get().pk)
    assert b"".join(response.streaming_content) == DESCRIPTION
    assert response["Content-Type"] == "application/octet-stream"
    assert response["Content-Disposition"] == f'attachment; filename="{submission.system}-description.pdf"'
    assert response["X-Content-Type-Options"] == "nosniff"


def test_failed_check_is_told_and_can_be_repeated_by_the_organizer(client, team, member, organizer):
    job = make_job("failed", kind="intake", failure="The disk is full.", failure_remedy="Make room.")
    submission = make_submission(make_team_system(team), state=S.CHECKING, job=job)
    text = page(client, member, "detail", submission.pk).content.decode()
    assert "The disk is full." in text
    assert "Check again" not in text
    assert "Check again" in page(client, organizer, "detail", submission.pk).content.decode()
    client.post(reverse("submissions:check", args=[submission.pk]))
    job.refresh_from_db()
    assert job.state == JobState.WAITING


# Withdrawing and evaluating again ------------------------------------------------------------------


def test_member_withdraws(client, submission, member, organizer):
    owner = submission.system.team.memberships.exclude(user=member).get().user
    client.force_login(member)
    address = reverse("submissions:withdraw", args=[submission.pk])
    link = f'href="{address}"'
    assert link in client.get(submission.get_absolute_url()).content.decode()
    asked = client.get(address).content.decode()
    assert "A withdrawal cannot be undone." in asked
    assert f"<dd>{submission.system.title}</dd>" in asked
    assert '<button class="button danger">Withdraw</button>' in asked
    submission.refresh_from_db()
    assert submission.state != S.WITHDRAWN
    response = client.post(address)
    assert (response.status_code, response.url) == (302, submission.get_absolute_url())
    submission.refresh_from_db()
    assert submission.state == S.WITHDRAWN
    assert submission.events.last().actor == member
    told = {one.parameters.get("to", "team"): one.parameters for one in Job.objects.filter(kind="send-notice")}
    assert {to: one["members"] for to, one in told.items()} == {"team": [owner.pk], "organizers": [organizer.pk]}
    assert told["team"]["subject"] == f"{submission} was withdrawn"
    text = client.get(submission.get_absolute_url()).content.decode()
    assert link not in text
    asked = client.get(address).content.decode()
    assert "has been withdrawn already" in asked
    assert '<button class="button danger">' not in asked


def test_member_withdraws_while_measures_and_the_numbers_that_follow_them_wait(client, team, member):
    """Cancelling the last measure cancels what follows it; that this was over then refused the withdrawal."""
    submission = add_files(make_submission(make_team_system(team), state="received"))
    services.accept_submission(submission=submission)
    jobs = list_jobs(submission)
    assert {one.state for one in jobs} == {JobState.WAITING}
    assert any(one.after_id for one in jobs)
    client.force_login(member)
    done = client.post(reverse("submissions:withdraw", args=[submission.pk]), follow=True)
    assert f"{submission} is withdrawn." in done.content.decode()
    submission.refresh_from_db()
    assert submission.state == S.WITHDRAWN
    assert {one.state for one in list_jobs(submission)} == {JobState.CANCELLED}
    assert S.FAILED not in submission.events.values_list("state", flat=True)


def test_what_stands_on_the_published_leaderboard_stays(client, edition, submission, member):
    Submission.objects.update(state=S.EVALUATED, evaluated_at=edition.created_at)
    edition.published_at = edition.created_at
    edition.save()
    client.force_login(member)
    response = client.post(reverse("submissions:withdraw", args=[submission.pk]), follow=True)
    assert "only the organizer can withdraw it" in response.content.decode()
    submission.refresh_from_db()
    assert submission.state == S.EVALUATED
    page = client.get(submission.get_absolute_url()).content.decode()
    assert "The leaderboard is published and this version was evaluated: only the organizer can withdraw it." in page


def test_submission_whose_check_was_cancelled_is_shown_as_stopped(client, edition, submission, member, organizer):
    check = make_job(kind="intake", state="cancelled")
    Submission.objects.filter(pk=submission.pk).update(state=S.CHECKING, job=check)
    other = make_submission(submission.system, state=S.CHECKING, job=make_job(kind="intake", state="running"))
    address = reverse("submissions:list", args=[edition.name])
    badge = '<span class="badge" data-state="failed">stopped</span>'
    client.force_login(organizer)
    for where in (address, submission.get_absolute_url(), other.get_absolute_url(), "/"):
        assert client.get(where).content.decode().count(badge) == 1, where
    for state, found in {"stopped": [submission], "checking": [other], "": [other, submission]}.items():
        assert list(client.get(address, {"state": state}).context["page"]) == found
    other.delete()
    assert "Look again" not in client.get(address).content.decode()
    assert "Look again" not in client.get(address, {"state": "stopped"}).content.decode()
    client.force_login(member)
    assert f"{submission} was not checked to its end" in client.get("/").content.decode()


def test_withdrawn_submission_takes_no_new_state(submission):
    change_state(submission=submission, state=S.WITHDRAWN)
    assert change_state(submission=submission, state=S.EVALUATED) is None
    submission.refresh_from_db()
    assert submission.state == S.WITHDRAWN


def test_organizer_lets_it_be_evaluated_again(client, submission, organizer, monkeypatch):
    heard = []

    def hear(submission, **_):
        heard.append(submission.pk)

    Submission.objects.update(state=S.FAILED)
    monkeypatch.setattr(submission_accepted, "receivers", [])
    submission_accepted.connect(hear, weak=False)
    client.force_login(organizer)
    client.post(reverse("submissions:evaluate", args=[submission.pk]))
    assert heard == [submission.pk]


def test_what_a_frozen_leaderboard_rests_on_is_not_evaluated_again(client, edition, submission, organizer):
    Submission.objects.update(state=S.EVALUATED, evaluated_at=edition.created_at)
    edition.frozen_at = edition.created_at
    edition.save()
    client.force_login(organizer)
    response = client.post(reverse("submissions:evaluate", args=[submission.pk]), follow=True)
    assert "frozen with these numbers" in response.content.decode()
    submission.refresh_from_db()
    assert submission.state == S.EVALUATED


# What differs --------------------------------------------------------------------------------------


@pytest.fixture
def versions(team):
    """Three versions: the second has another first utterance and description, the third lost a data set."""
    system = make_team_system(team)
    first, second, third = (make_full(system) for _ in range(3))
    changed = second.files.filter(data_set__name="tones_enrolls").first()
    changed.audio = store_tone(500)
    changed.save()
    document = second.documents.get()
    document.key = store_bytes(DESCRIPTION + b"2", ".document")
    document.save()
    third.files.filter(data_set__name="tones_trials_m").delete()
    third.documents.create(path="notes.txt", kind=SubmittedDocument.Kind.OTHER, key=document.key, bytes=1)
    return first, second, third


def counts(response):
    sections = response.context["sections"]
    return {one["title"]: {str(change): n for change, n in one["counts"].items() if n} for one in sections}


def test_diff_counts_what_changed_in_each_part(client, versions, member):
    first, second, third = versions
    assert counts(page(client, member, "diff", first.pk, second.pk)) == {
        "tones_enrolls": {"changed": 1, "unchanged": 3},
        "tones_trials_f": {"unchanged": 2},
        "tones_trials_m": {"unchanged": 2},
        "documents": {"changed": 1},
    }
    assert counts(page(client, member, "diff", third.pk, second.pk)) == {
        "tones_enrolls": {"changed": 1, "unchanged": 3},
        "tones_trials_f": {"unchanged": 2},
        "tones_trials_m": {"removed": 2},
        "documents": {"changed": 1, "added": 1},
    }
