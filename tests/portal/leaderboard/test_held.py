"""New evaluations that an organizer holds back: on no leaderboard and no public page until they are released."""

import pytest
from django.urls import reverse
from django.utils import timezone

from portal.core.models import AuditEvent
from portal.jobs.models import Job
from portal.jobs.services import NotPossible
from portal.leaderboard.selectors import build_leaderboard
from portal.submissions.models import Submission, System
from portal.submissions.rules import Relation, release_problem
from portal.submissions.selectors import shown_submission
from portal.submissions.services import evaluate_again, release, withdrawal_problem
from tests.pages import read_page
from tests.portal.factories import client_of, make_corpus, make_edition, make_submission, make_team, make_team_system
from tests.portal.leaderboards import make_leaderboard, put_on_leaderboard
from tests.portal.objective_runs import evaluate

pytestmark = pytest.mark.django_db


@pytest.fixture
def edition(organizer):
    return make_leaderboard(organizers=[organizer], holds_evaluations=True, published_at=timezone.now())


def labels(edition):
    return {entry.label for entry in build_leaderboard(edition).entries}


def test_held_system_is_on_no_public_page_until_it_is_released(client, organizer, edition):
    make_team(edition)  # papers know a T04-p1
    held = put_on_leaderboard(make_team_system(make_team(edition), "p1"), eer=40, wer=2)
    Submission.objects.filter(pk=held.pk).update(is_held=True)
    name, board = held.system.name, f"/editions/{edition.name}/leaderboard/"
    public = [board, f"{board}leaderboard.csv", f"{board}leaderboard.json", f"{board}leaderboard.tex"]
    public += [reverse("api:leaderboard", args=[edition.name]), "/api/systems/"]
    for address in public:
        answer = client.get(address)
        assert (answer.status_code, "T05-p1" in answer.content.decode()) == (200, False), address
    for address in (f"/systems/{name}/", f"/systems/{name}/objective.csv", reverse("api:system", args=[name])):
        assert client.get(address).status_code in {302, 401}, address
    team = client_of(held.system.team.memberships.get().user)
    assert team.get(f"/systems/{name}/").status_code == 200
    assert withdrawal_problem(Submission.objects.get(pk=held.pk), Relation.TEAM) == ""
    page = read_page(client_of(organizer).get(board))
    assert (f"{held.system.label} version {held.version}" in page, "Release" in page) == (True, True)
    address_of_release = reverse("submissions:release", args=[held.pk])
    assert team.post(address_of_release).status_code == 404
    assert client_of(organizer).post(address_of_release).status_code == 302
    told = Job.objects.get(kind="send-notice").parameters
    assert (told["kind"], told["subject"]) == ("released", f"{held} was released")
    assert told["members"] == [held.system.team.memberships.get().user_id]
    for address in public:
        assert "T05-p1" in client.get(address).content.decode(), address
    assert client.get(f"/systems/{name}/").status_code == 200
    assert AuditEvent.objects.get(action="submission.released").actor == organizer


def test_version_before_stays_while_a_new_one_is_held(edition):
    system = System.objects.get(label="T03-p1")
    first = shown_submission(system, Relation.OTHER)
    newer = put_on_leaderboard(system, eer=40, wer=3)
    Submission.objects.filter(pk=newer.pk).update(is_held=True)
    assert shown_submission(system, Relation.OTHER) == first
    assert "T03-p1" in labels(edition)
    assert shown_submission(system, Relation.TEAM).pk == newer.pk


@pytest.mark.parametrize("holds", [True, False])
def test_evaluation_is_held_where_the_edition_holds_it(holds):
    edition = make_edition(make_corpus(with_audio=False), audio_required=False, holds_evaluations=holds)
    submission = make_submission(make_team_system(make_team(edition)), Submission.State.ACCEPTED)
    evaluate(submission)
    submission.refresh_from_db()
    assert (submission.evaluated_at is not None, submission.is_held) == (True, holds)


def test_numbers_that_are_computed_anew_wait_again(organizer, edition):
    submission = Submission.objects.get(system__label="T01-p1")
    evaluate_again(submission=submission, by=organizer)
    assert "T01-p1" not in labels(edition)
    with pytest.raises(NotPossible, match="no numbers yet"):
        release(submission=submission, by=organizer)


def test_release_would_change_no_frozen_leaderboard():
    now = timezone.now()
    held = {"is_held": True, "is_evaluated": True, "evaluated_at": now}
    assert release_problem(**held, frozen_at=None) == ""
    assert "must not change" in release_problem(**held, frozen_at=now)
    assert "not held back" in release_problem(**held | {"is_held": False}, frozen_at=None)
