"""The page of a system in an edition: what it shows to whom, and what it costs."""

import csv
import io
from datetime import timedelta

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.utils import timezone

from evaluation.app.objective_results.selectors import ReadExtent, read_objective_values
from evaluation.objective_results.values import Basis
from listening.app.models import Study
from portal.challenges.selectors import terms_of_data
from portal.core.models import AuditEvent
from portal.home.pages import home_page
from portal.jobs.models import Job
from portal.leaderboard.selectors import build_leaderboard, find_released
from portal.submissions.models import Submission
from tests.pages import read_page
from tests.portal.factories import (
    add_files,
    make_corpus,
    make_edition,
    make_organizer,
    make_submission,
    make_team,
    make_team_system,
    make_user,
)
from tests.portal.measured_runs import make_measured_run
from tests.portal.objective_runs import make_objective_run, number, ranked_numbers

pytestmark = pytest.mark.django_db
REPORTED = {"reported": 12.3, "reported_text": "12.3", "reported_in": "results/results.txt, line 2", "agrees": False}


@pytest.fixture
def edition():
    return make_edition(make_corpus("tones", speakers=4), organizers=[make_organizer()])


@pytest.fixture
def system(edition):
    """An evaluated submission with one reported number that differs, measured audio, and one number missing."""
    system = make_team_system(make_team(edition))
    submission = add_files(make_submission(system))
    for data_set in edition.corpus.data_sets.all():
        make_measured_run(system, data_set, rho=(0.2, 0.6))
    numbers = {one.identity: one for one in ranked_numbers(edition, eer=16.0, wer=8.5, pitch=0.42)}
    unlike = number(edition, "eer", "kaldi", "libri_test_trials_f", 14.1, low=12.0, high=16.5, **REPORTED)
    numbers |= {unlike.identity: unlike}
    missing = [("G_VD of vctk_test_trials_f", "its matrices in results-x/similarity are missing", False)]
    make_objective_run(submission, numbers.values(), missing=missing)
    return system


def get(client, user, system, path=""):
    if user is not None:
        client.force_login(user)
    else:
        client.logout()
    return client.get(f"/systems/{system.name}/{path}")


def people(system):
    return system.team.memberships.get().user, system.edition.organizers.get()


def publish(system, **fields):
    type(system.edition).objects.filter(pk=system.edition_id).update(published_at=timezone.now(), **fields)


# What it shows -------------------------------------------------------------------------------------


def test_claims_that_nothing_confirms_are_marked_for_everybody(client, edition):
    system = make_team_system(make_team(edition))
    reported = number(
        edition, "eer", "kaldi", "libri_test_trials_f", 9.1, basis=Basis.REPORTED, reported=9.1, reported_text="9.1"
    )
    make_objective_run(make_submission(system), [reported])
    publish(system)
    assert "9.100 <small>reported</small>" in read_page(get(client, None, system))


# Who sees what -------------------------------------------------------------------------------------


SECRETS = (
    "reported 12.3",
    "results/results.txt",
    "similarity are missing",
    "Listen to the extremes",
    "/files/",
    "/submissions/",
)


@pytest.mark.parametrize("rival", [True, False])
def test_public_sees_the_numbers_of_a_published_leaderboard_and_nothing_else(client, system, rival):
    publish(system)
    user = make_team(system.edition).memberships.get().user if rival else None
    page = read_page(get(client, user, system))
    assert "14.1 <small>12.0 to 16.5</small></span>" in page
    assert [secret for secret in SECRETS if secret in page] == []
    for path in ("objective.csv", "objective.json", "objective.tex"):
        response = get(client, user, system, path)
        assert response.status_code == 200
        assert [secret for secret in SECRETS if secret in response.content.decode()] == []
        assert b"claimed" not in response.content, path
        assert b"reported" not in response.content, path
    trials = system.corpus.data_sets.get(name="tones_trials_f")
    file = system.submissions.get().files.filter(data_set=trials).first()
    for path in ("progress", f"sets/{trials}/", f"sets/{trials}/measures.csv", f"files/{file.pk}/"):
        assert get(client, user, system, path).status_code == (404 if rival else 302), path


def test_frozen_leaderboard_shows_what_had_been_evaluated(client, system):
    publish(system, frozen_at=timezone.now() - timedelta(days=1))
    assert get(client, None, system).status_code == 302
    publish(system, frozen_at=timezone.now() + timedelta(seconds=1))
    assert get(client, None, system).status_code == 200


def test_published_numbers_stay_while_they_are_computed_again(client, system):
    publish(system)
    system.submissions.update(state=Submission.State.EVALUATING)
    assert "12.0 to 16.5" in read_page(get(client, None, system))
    system.submissions.update(state=Submission.State.WITHDRAWN)
    assert get(client, None, system).status_code == 302
    owner = system.team.memberships.get(role="owner").user
    assert "Withdrawn: no leaderboard shows this version" in read_page(get(client, owner, system))


# Downloads -----------------------------------------------------------------------------------------


def test_csv_has_every_number_with_its_identity(client, system, edition):
    owner, _ = people(system)
    response = get(client, owner, system, "objective.csv")
    rows = list(csv.DictReader(io.StringIO(response.content.decode())))
    values = read_objective_values([system.submissions.get()])[system.submissions.get().pk]
    assert len(rows) == len(values.numbers)
    [row] = [one for one in rows if one["agrees"] == "no"]
    wanted = {
        "system": system.name,
        "data_set": "libri_test_trials_f",
        "gender": "f",
        "metric": "eer",
        "estimator": "kaldi",
        "attack_model": "semi-informed",
        "value": "14.1",
        "low": "12.0",
        "high": "16.5",
        "basis": "from the scores",
        "reported": "12.3",
        "reported_in": "results/results.txt, line 2",
        "unit": "%",
        "better": "higher",
    }
    assert {key: row[key] for key in wanted} == wanted


# What it costs -------------------------------------------------------------------------------------


def test_numbers_of_ten_systems_cost_two_queries(edition, django_assert_num_queries):
    submissions = []
    for _ in range(10):
        submission = make_submission(make_team_system(make_team(edition)))
        make_objective_run(submission, ranked_numbers(edition, eer=20.0, wer=7.0))
        submissions.append(submission.pk)
    chosen = list(Submission.objects.filter(pk__in=submissions).select_related("system__edition"))
    with django_assert_num_queries(2):
        found = read_objective_values(chosen, extent=ReadExtent.RANKED)
    averages = [one.average("eer", "kaldi", split="test") for one in found.values()]
    assert {round(one.value) for one in averages if one} == {20}
    assert len(found) == 10


def test_what_a_team_offers_is_heard_by_everybody_once_released_and_never_during_a_listening_test(client, system):
    owner, organizer = people(system)
    [submission] = system.submissions.all()
    submission.documents.create(path="description.pdf", kind="description", key=store_bytes(b"%PDF-1.7"), bytes=8)

    def share(user, **given):
        client.force_login(user)
        return client.post(f"/systems/{system.name}/share", given).status_code

    def heard(user=None):
        page = read_page(get(client, user, system))
        return page.count("<audio"), get(client, user, system, "description.pdf").status_code

    assert share(organizer, offer="samples") == 302  # which is the team's to offer
    assert not submission.shared_parts.exists()
    both = make_user()
    system.team.memberships.create(user=both)
    system.edition.organizers.add(both)
    share(both, offer="samples")
    [job] = Job.objects.filter(kind="send-notice")
    assert (job.parameters["kind"], job.parameters["members"]) == ("offered", [organizer.pk])
    share(owner, offer="description")
    assert "The description is offered: public once" in read_page(get(client, owner, system))
    [path] = home_page(organizer)["paths"]
    n = submission.shared_parts.count()
    assert (path.next.title, path.next.url) == (
        f"{n} samples or descriptions wait for release",
        f"/systems/{system.name}/?version=1#samples",
    )
    again = submission.shared_parts.filter(document=None).first().file
    again.pk, again.data_set = None, submission.system.corpus.data_sets.exclude(pk=again.data_set_id).first()
    again.save()
    share(owner, offer=again.pk)  # of an utterance that another set has, too
    told = AuditEvent.objects.count()
    assert share(owner, offer="9" * 5000) == 302
    assert AuditEvent.objects.count() == told
    later = submission.system.submissions.create(version=2, state="evaluated", evaluated_at=timezone.now())
    assert "What was offered with" in read_page(get(client, owner, system))
    later.delete()
    share(owner, release="all")  # which is the organizer's
    publish(system)
    assert heard() == (0, 302)
    assert "There are no samples to hear." in read_page(get(client, None, system))
    share(organizer, release="all")
    told = Job.objects.get(kind="send-notice", parameters__kind="released").parameters
    assert "Everybody hears and reads it now." in told["lines"][0]
    assert "for release" not in str(home_page(organizer)["paths"][0].next)
    offered = submission.shared_parts.filter(document=None).count()
    assert offered
    assert heard() == (offered, 200)
    page, originals = read_page(get(client, None, system)), "Without their originals"
    assert ("no samples to hear" in page, originals in page, page.count("system, PDF")) == (False, True, 1)
    later = "eleased; public once the leaderboard is published"
    assert later not in read_page(get(client, owner, system))
    type(system.edition).objects.filter(pk=system.edition_id).update(published_at=None)
    assert read_page(get(client, owner, system)).count(later) == offered + 1
    publish(system)
    type(system.edition).objects.filter(pk=system.edition_id).update(shares_data=True)
    assert heard() == (offered, 200)  # nobody knows what they accept
    other = make_team(system.edition)
    member = other.memberships.get().user
    assert heard(member) == (offered, 200)
    terms = {"text": terms_of_data(system.edition), "accepted_at": timezone.now()}
    system.edition.data_acceptances.create(team=other, user=member, **terms)
    assert heard(member) == (2 * offered, 200)  # originals beside
    assert originals not in read_page(get(client, member, system))
    paper = get(client, None, system, "description.pdf")
    assert paper["Content-Type"] == "application/pdf"
    assert paper["Content-Disposition"] == f'attachment; filename="{system}-description.pdf"'
    assert "sandbox" in paper["Content-Security-Policy"]
    leaderboard = read_page(client.get(f"/editions/{system.edition.name}/leaderboard/"))
    assert ("description.pdf?version=1" in leaderboard, ">samples</span>" in leaderboard) == (True, True)
    study = Study.objects.create(name="test", title="Test", edition=system.edition, state=Study.State.OPEN)
    study.conditions.create(submission=submission, code="A")
    assert heard() == (0, 200)
    Study.objects.update(state=Study.State.CLOSED)
    share(owner, back=submission.shared_parts.get(document__isnull=False).pk)
    assert heard() == (offered, 302)
    share(organizer, back=submission.shared_parts.first().pk)
    share(organizer, release="all")  # which brings nothing back
    assert heard() == (offered - 1, 302)
    type(system.edition).objects.filter(pk=system.edition_id).update(published_at=None)
    assert heard() == (0, 302)


def test_released_description_stays_until_that_of_a_later_version_is_released(client, system):
    owner, organizer = people(system)
    [first] = system.submissions.all()
    publish(system)
    second = Submission.objects.create(system=system, version=2, state="evaluated", evaluated_at=timezone.now())
    make_objective_run(second, ranked_numbers(system.edition, eer=20.0, wer=7.0))
    for one in (first, second):
        paper = {"path": "description.pdf", "kind": "description", "bytes": 8}
        one.documents.create(key=store_bytes(f"%PDF {one.version}".encode()), **paper)

    def share(user, version, **given):
        client.force_login(user)
        client.post(f"/systems/{system.name}/share?version={version}", given)

    def read():
        """What everybody reads, and the version that the leaderboard names."""
        response = get(client, None, system, "description.pdf")
        content = b"".join(response.streaming_content) if response.status_code == 200 else b""
        return content.decode(), find_released(build_leaderboard(system.edition))[0].get(system.name)

    assert read() == ("", None)
    share(owner, 1, offer="description")
    share(organizer, 1, release="all")
    assert read() == ("%PDF 1", 1)
    assert "system, PDF</a> of version 1" in read_page(get(client, None, system))
    page = read_page(get(client, owner, system))
    assert "stays public until you offer that of this version and an organizer releases it" in page
    share(owner, 2, offer="description")
    assert read() == ("%PDF 1", 1)
    page = read_page(get(client, owner, system))
    assert "stays public until an organizer releases that of this version" in page
    assert "waits for its release by an organizer" in page
    assert '<span class="soft">released</span>' in read_page(get(client, owner, system, "?version=1"))
    share(organizer, 2, release="all")
    assert read() == ("%PDF 2", 2)
    assert "released, but not public: the leaderboard shows version 2" in read_page(
        get(client, owner, system, "?version=1")
    )
    share(owner, 2, back=second.shared_parts.get().pk)
    assert read() == ("", None)  # the earlier one does not come back


def store_bytes(content):
    return default_storage.save("documents/description.pdf", ContentFile(content))
