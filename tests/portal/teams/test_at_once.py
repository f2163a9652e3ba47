"""Actions of several people at the same instant, each in a thread with its own connection: only what may be remains."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection
from django.utils import timezone

from portal.jobs.services import NotPossible
from portal.teams import services
from portal.teams.models import Invitation, Membership, Team
from tests.portal.factories import make_edition, make_organizer, make_team, make_user

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres]
AT_ONCE = 6
FIELDS = {
    "contact": "Ada",
    "contact_email": "ada@uni.example",
    "affiliation": "Somewhere",
    "country": "FR",
    "is_academic": True,
}


def at_once(actions):
    """How each action ended: its result, or the sentence that refused it."""
    together = Barrier(len(actions))

    def run(action):
        together.wait()
        try:
            return action()
        except NotPossible as reason:
            return str(reason)
        finally:
            connection.close()

    with ThreadPoolExecutor(len(actions)) as threads:
        return list(threads.map(run, actions))


def test_person_who_registers_many_times_at_once_has_one_team():
    edition, person, now = make_edition(), make_user(), timezone.now()
    ends = at_once(
        [
            lambda number=number: services.register_team(
                edition=edition, by=person, now=now, name=f"Team {number}", **FIELDS
            )
            for number in range(AT_ONCE)
        ]
    )
    assert Team.objects.count() == 1
    assert sum("You belong to the team" in str(end) for end in ends) == AT_ONCE - 1


def test_person_invited_by_many_teams_joins_one():
    edition, person, now = make_edition(), make_user(), timezone.now()
    teams = [make_team(edition) for _ in range(AT_ONCE)]
    invitations = [
        services.invite_member(team=team, email=person.email, by=team.memberships.get().user, now=now) for team in teams
    ]
    at_once([lambda one=one: services.accept_invitation(invitation=one, by=person, now=now) for one in invitations])
    assert Membership.objects.filter(user=person).count() == 1
    assert Invitation.objects.filter(accepted_at__isnull=False).count() == 1


def test_teams_approved_at_once_get_numbers_of_their_own():
    edition, organizer, now = make_edition(), make_organizer(), timezone.now()
    teams = [make_team(edition, number=None, state="waiting") for _ in range(AT_ONCE)]
    at_once([lambda team=team: services.approve_team(team=team, by=organizer, now=now) for team in teams])
    assert sorted(edition.teams.values_list("number", flat=True)) == list(range(1, AT_ONCE + 1))
