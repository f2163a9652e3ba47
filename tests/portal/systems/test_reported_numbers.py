"""Reported numbers that differ: one count on list, submission, system, leaderboard, job; ZEBRA as letters."""

import pytest
from django.urls import reverse
from django.utils import timezone

from portal.jobs.models import Job
from tests.pages import read_page
from tests.portal.factories import (
    make_corpus,
    make_edition,
    make_organizer,
    make_submission,
    make_team,
    make_team_system,
)
from tests.portal.objective_runs import make_objective_run, number, ranked_numbers

pytestmark = pytest.mark.django_db
SET = "libri_test_trials_f"


@pytest.fixture
def edition():
    return make_edition(make_corpus("tones", speakers=4), organizers=[make_organizer()])


@pytest.fixture
def submission(edition):
    """An evaluated submission; an EER and a ZEBRA category are reported otherwise."""
    submission = make_submission(make_team_system(make_team(edition)))
    individual = number(edition, "zebra_individual", "", SET, 1.5)
    reported_numbers = {"reported_in": "results/zebra, line 3", "agrees": False}
    category = number(edition, "zebra_category", "", SET, 2.0, reported=3.0, reported_text="C", **reported_numbers)
    eer = number(edition, "eer", "kaldi", SET, 14.1, reported=12.3, reported_text="12.3", **reported_numbers)
    numbers = {one.identity: one for one in ranked_numbers(edition, eer=16.0, wer=8.5)}
    make_objective_run(submission, (numbers | {one.identity: one for one in (individual, category, eer)}).values())
    return submission


def people(submission):
    return submission.system.team.memberships.get().user, submission.system.edition.organizers.get()


def text_of(client, user, address):
    if user is None:
        client.logout()
    else:
        client.force_login(user)
    return read_page(client.get(address))


def test_leaderboard_tells_its_organizers_alone(client, submission, edition):
    member, organizer = people(submission)
    address = reverse("leaderboard:detail", args=[edition.name])
    assert "2 reported numbers differ from ours" in text_of(client, organizer, address)
    type(edition).objects.update(published_at=timezone.now())
    assert "2 reported numbers differ from ours" in text_of(client, organizer, address)
    for person in (member, None):
        page = text_of(client, person, address)
        assert submission.system.label in page
        assert "reported numbers differ" not in page


def test_frozen_leaderboard_tells_what_was_known_then(client, submission, edition):
    _, organizer = people(submission)
    job = Job.objects.get(kind="objective")
    type(edition).objects.update(frozen_at=timezone.now())
    Job.objects.filter(pk=job.pk).update(finished_at=timezone.now())
    assert "reported numbers differ" not in text_of(
        client, organizer, reverse("leaderboard:detail", args=[edition.name])
    )
