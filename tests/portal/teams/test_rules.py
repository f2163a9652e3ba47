"""What a team and its people may do, and when: pure functions, each at its boundary."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from portal.challenges.models import Edition
from portal.teams import rules
from portal.teams.models import Invitation, Membership, Team
from portal.teams.rules import InvitationState

TICK = timedelta(microseconds=1)
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
FROZEN = "The members of “Bats” are fixed since the first accepted submission on 2026-03-01 12:00 UTC."


def team(state="approved", frozen=None):
    return Team(name="Bats", edition=Edition(), state=state, members_frozen_at=frozen)


@pytest.mark.parametrize(
    ("now", "state"),
    [(NOW - TICK, InvitationState.OPEN), (NOW, InvitationState.EXPIRED), (NOW + TICK, InvitationState.EXPIRED)],
)
def test_invitation_ends_at_the_very_moment(now, state):
    assert rules.invitation_state(Invitation(expires_at=NOW), now) is state


@pytest.mark.parametrize(("now", "ended"), [(NOW - TICK, False), (NOW, True)])
def test_link_to_register_ends_at_the_very_moment(now, ended):
    link = rules.RegistrationLink(Edition(name="vpc"), invited_by=None, number=1, ends_at=NOW)
    assert rules.link_problem(link, now).startswith("This link ended on 2026-03-01 12:00 UTC.") is ended


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (NOW - TICK, "Registration opens on 2026-03-01 12:00 UTC."),
        (NOW, ""),
        (NOW + timedelta(days=1) - TICK, ""),
        (NOW + timedelta(days=1), "Registration closed on 2026-03-02 12:00 UTC."),
    ],
)
def test_registration_opens_and_closes_at_the_very_moment(now, said):
    edition = Edition(is_listed=True, registration_opens_at=NOW, registration_closes_at=NOW + timedelta(days=1))
    assert rules.registration_problem(edition, team=None, now=now) == said


def test_nobody_joins_a_team_that_is_frozen_or_over():
    assert {rules.joining_problem(team(state)) for state in ("waiting", "approved")} == {""}
    assert rules.joining_problem(team("declined")) == "The team “Bats” is declined; nobody can join it."
    assert rules.joining_problem(team("withdrawn")) == "The team “Bats” is withdrawn; nobody can join it."
    assert rules.joining_problem(team(frozen=NOW)).startswith(FROZEN)


def test_members_leave_until_frozen_and_owners_never():
    assert rules.leaving_problem(team(), is_owner=False) == ""
    assert rules.leaving_problem(team(frozen=NOW), is_owner=False).startswith(FROZEN)
    for frozen in (None, NOW):
        assert "Hand the team over" in rules.leaving_problem(team(frozen=frozen), is_owner=True)


def test_only_the_organizer_removes_from_a_frozen_team_and_nobody_the_owner():
    member = SimpleNamespace(role=Membership.Role.MEMBER, user="Ada")
    owner = SimpleNamespace(role=Membership.Role.OWNER, user="Bea")
    found = {
        (frozen is None, is_organizer): rules.removing_problem(team(frozen=frozen), member, is_organizer=is_organizer)
        for frozen in (None, NOW)
        for is_organizer in (False, True)
    }
    assert [found[True, False], found[True, True], found[False, True]] == ["", "", ""]
    assert found[False, False].startswith(FROZEN)
    for is_organizer in (False, True):
        assert rules.removing_problem(team(), owner, is_organizer=is_organizer).startswith("Bea owns the team.")


@pytest.mark.parametrize(
    ("state", "frozen", "approve", "decline"),
    [
        ("waiting", None, True, True),
        ("approved", None, False, True),
        ("approved", NOW, False, False),
        ("declined", None, True, False),
        ("withdrawn", None, False, False),
    ],
)
def test_organizer_decides_only_what_makes_sense(state, frozen, approve, decline):
    one = team(state, frozen)
    assert (rules.approval_problem(one) == "", rules.declining_problem(one) == "") == (approve, decline)


@pytest.mark.parametrize(
    ("fields", "email", "said"),
    [
        ({}, "ada@uni.example", ""),
        ({}, "ADA@Uni.Example", ""),
        ({}, "eve@uni.example", "This invitation is for ada@uni.example, and you are logged in as eve@uni.example. "),
        ({"accepted_at": NOW}, "ada@uni.example", "This invitation was accepted already; each link serves once."),
        ({"revoked_at": NOW}, "ada@uni.example", "This invitation was revoked."),
        ({"expires_at": NOW}, "ada@uni.example", "This invitation ended on 2026-03-01 12:00 UTC."),
    ],
)
def test_invitation_is_accepted_once_in_time_by_its_own_address(fields, email, said):
    invitation = Invitation(team=team(), email="ada@uni.example", **{"expires_at": NOW + TICK} | fields)
    refused = rules.acceptance_problem(invitation, email=email, now=NOW)
    assert refused.startswith(said)
    assert bool(refused) == bool(said)
