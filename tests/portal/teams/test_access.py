"""Every page of editions and teams × role × phase: what is not one's own looks like what does not exist."""

import re
from contextlib import contextmanager

import pytest
from django.core import mail
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from portal.teams import services
from portal.teams.models import Team
from tests.portal.factories import make_edition, make_operator, make_organizer, make_team, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain_refusals")]
LOGIN = "log-in"
ROLES = ("visitor", "stranger", "operator", "other organizer", "rival", "member", "owner", "organizer")
OPEN = (200,) * 8
# Who belongs to the team or organises the edition; the others read "not found".
TEAM = (LOGIN, 404, 404, 404, 404, 200, 200, 200)
OWNER = (LOGIN, 404, 404, 404, 404, 404, 200, 200)
ORGANIZER = (LOGIN, 404, 404, 404, 404, 404, 404, 200)
PAGES = {
    "editions:list": OPEN,
    "editions:detail": OPEN,
    "editions:recipe": OPEN,
    "editions:data": OPEN,  # what there is, and what one has to do; the files: editions/test_data
    "editions:new": (LOGIN, 404, 404, 200, 404, 404, 404, 200),
    "editions:edit": ORGANIZER,
    "editions:copy": ORGANIZER,
    "editions:teams": ORGANIZER,
    "editions:audit": ORGANIZER,
    "editions:audit-csv": ORGANIZER,
    "editions:register": (LOGIN, *(200,) * 7),
    "teams:detail": TEAM,
    "teams:edit": OWNER,
    "teams:decide": ORGANIZER,
    "teams:withdraw": OWNER,
    "teams:remove": OWNER,
    "teams:transfer": OWNER,
    "teams:leave": (LOGIN, 404, 404, 404, 404, 200, 200, 404),
    "teams:invitation": OPEN,  # anyone who has its secret; only the invited address can accept
}
HIDDEN = {
    "editions:list": OPEN,
    "editions:detail": (LOGIN, 404, 404, 404, 200, 200, 200, 200),  # the rival takes part, too
    "editions:recipe": (LOGIN, 404, 404, 404, 200, 200, 200, 200),
    "editions:register": (LOGIN, 404, 404, 404, 200, 200, 200, 200),
}
# A post that does something; 302 leads on, with a message that says what was done or why not.
ACTIONS = {
    "editions:new": (LOGIN, 404, 404, 422, 404, 404, 404, 422),
    "editions:edit": (LOGIN, 404, 404, 404, 404, 404, 404, 422),
    "editions:copy": (LOGIN, 404, 404, 404, 404, 404, 404, 422),
    "editions:register": (LOGIN, *(422,) * 7),
    "editions:replace-link": (LOGIN, 404, 404, 404, 404, 404, 404, 302),
    "teams:edit": (LOGIN, 404, 404, 404, 404, 404, 422, 422),
    "teams:decide": (LOGIN, 404, 404, 404, 404, 404, 404, 422),
    "teams:invite": (LOGIN, 404, 404, 404, 404, 404, 422, 422),
    "teams:revoke-invitation": (LOGIN, 404, 404, 404, 404, 404, 302, 302),
    "teams:resend-invitation": (LOGIN, 404, 404, 404, 404, 404, 200, 200),  # with the link, which no mail brings
    "teams:transfer": (LOGIN, 404, 404, 404, 404, 404, 302, 302),
    "teams:remove": (LOGIN, 404, 404, 404, 404, 404, 302, 302),
    "teams:leave": (LOGIN, 404, 404, 404, 404, 302, 302, 404),
    "teams:withdraw": (LOGIN, 404, 404, 404, 404, 404, 302, 302),
    "teams:ask-again": (LOGIN, 404, 404, 404, 404, 404, 302, 302),
    "teams:release": (LOGIN, 404, 404, 404, 404, 404, 404, 302),
}


class Scene:
    """An edition with a team that has a member and an invitation, and a rival team."""

    def __init__(self, phase="approved"):
        self.people = {
            "stranger": make_user(),
            "operator": make_operator(),
            "other organizer": make_organizer(),
            "rival": make_user(),
            "member": make_user(name="Hidden Member"),
            "owner": make_user(),
            "organizer": make_organizer(),
        }
        self.edition = make_edition(organizers=[self.people["organizer"]], name="vpc")
        make_edition(organizers=[self.people["other organizer"]])
        make_team(self.edition, owner=self.people["rival"])
        self.team = make_team(self.edition, owner=self.people["owner"], members=[self.people["member"]])
        invited = services.invite_member(
            team=self.team, email="new@uni.example", by=self.people["owner"], now=timezone.now()
        )
        state = "approved" if phase == "frozen" else phase
        Team.objects.filter(pk=self.team.pk).update(state=state)
        if phase == "frozen":
            services.freeze_members(team=self.team, now=timezone.now())
        membership = self.team.memberships.get(user=self.people["member"])
        secret = re.search(r"/invitations/(\S+)/", mail.outbox[-1].body)[1]
        self.arguments = {
            "teams:invitation": [secret],
            "teams:revoke-invitation": [self.team.pk, invited.pk],
            "teams:resend-invitation": [self.team.pk, invited.pk],
            "teams:remove": [self.team.pk, membership.pk],
            "teams:transfer": [self.team.pk, membership.pk],
        }

    def address(self, name):
        if name in ("editions:list", "editions:new"):
            return reverse(name)
        default = ["vpc"] if name.startswith("editions:") else [self.team.pk]
        return reverse(name, args=self.arguments.get(name, default))

    def client(self, role):
        client = Client()
        if role != "visitor":
            client.force_login(self.people[role])
        return client


def outcome(response):
    if response.status_code == 302 and response.url.startswith(reverse("account_login")):
        return LOGIN
    return response.status_code


def pages_of_everybody(scene, names):
    clients = [scene.client(role) for role in ROLES]
    return {name: tuple(outcome(client.get(scene.address(name))) for client in clients) for name in names}


@pytest.mark.parametrize("phase", ["waiting", "frozen"])
def test_each_role_sees_its_pages(phase):
    assert pages_of_everybody(Scene(phase), PAGES) == PAGES


def test_edition_that_is_not_listed_is_seen_by_who_takes_part():
    scene = Scene()
    scene.edition.is_listed = False
    scene.edition.save()
    assert pages_of_everybody(scene, HIDDEN) == HIDDEN
    lists = [scene.client(role).get("/editions/").content.decode() for role in ROLES]
    assert [scene.edition.title in page for page in lists] == [False] * 4 + [True] * 4


@pytest.mark.parametrize("phase", ["approved", "frozen"])
def test_each_role_does_what_it_may(phase):
    scene = Scene(phase)
    expected = {name: roles for name, roles in ACTIONS.items() if (name == "teams:release") == (phase == "frozen")}
    assert {name: tuple(answer_to(scene, role, name) for role in ROLES) for name in expected} == expected


def answer_to(scene, role, name):
    """What somebody gets who does it; afterwards everything is as before."""
    with rolled_back():
        return outcome(scene.client(role).post(scene.address(name)))


@contextmanager
def rolled_back():
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def test_membership_or_invitation_of_another_team_is_not_reached_through_ones_own():
    scene = Scene()
    own = scene.edition.teams.exclude(pk=scene.team.pk).get()
    rival = scene.client("rival")
    for name in ("remove", "transfer", "revoke-invitation", "resend-invitation"):
        theirs = scene.arguments[f"teams:{name}"][1]
        assert rival.post(reverse(f"teams:{name}", args=[own.pk, theirs])).status_code == 404
    assert scene.team.memberships.count() == 2


def test_members_do_not_see_invitations_nor_addresses_of_others():
    scene = Scene()
    page = scene.client("member").get(scene.address("teams:detail")).content.decode()
    assert scene.people["owner"].name in page
    assert "new@uni.example" not in page
    assert scene.people["owner"].email not in page


def test_team_that_does_not_take_part_is_no_key_to_other_pages():
    scene = Scene("withdrawn")
    assert services.find_active_team(scene.people["owner"], scene.edition) is None
    assert scene.client("owner").get(scene.address("editions:audit")).status_code == 404
