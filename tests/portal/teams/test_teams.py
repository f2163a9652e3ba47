"""Teams: registration, decision, invitations by mail, who belongs to them, and what the first submission fixes."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from portal.challenges.models import Edition
from portal.challenges.rules import moment
from portal.core.models import AuditEvent
from portal.jobs.models import Job
from portal.jobs.services import NotPossible
from portal.teams import selectors, services
from portal.teams.models import Invitation, Membership, Team
from tests.pages import read_page
from tests.portal.factories import make_edition, make_organizer, make_team, make_user

pytestmark = pytest.mark.django_db
FIELDS = {
    "name": "Bats",
    "contact": "Ada Lovelace",
    "contact_email": "ada@uni.example",
    "affiliation": "University of Somewhere",
    "country": "FR",
    "is_academic": "yes",
}


@pytest.fixture(autouse=True)
def mail_server(settings):
    """Invitations are mailed; without a mail server: tests/portal/accounts/test_without_mail.py."""
    settings.MAIL_SERVER = object()


@pytest.fixture
def organizer():
    return make_organizer(name="Olga")


@pytest.fixture
def edition(organizer):
    return make_edition(organizers=[organizer], name="vpc", title="Challenge")


@pytest.fixture
def owner():
    return make_user(name="Owen")


@pytest.fixture
def team(edition, owner):
    return make_team(edition, owner=owner, name="Bats")


@pytest.fixture
def log_in(client):
    def as_person(person):
        client.force_login(person)
        return client

    return as_person


def said(response):
    """The messages on the page that follows, as kind and sentence."""
    return [(message.level_tag, str(message)) for message in response.context["messages"]]


def last_action():
    event = AuditEvent.objects.exclude(action="job.created").first()
    return event.action, event.actor, event.data


def refused(service, **arguments):
    with pytest.raises(NotPossible) as reason:
        service(**arguments)
    return str(reason.value)


# Registration and decision


def test_registration_makes_a_waiting_team_with_its_owner(log_in, edition, owner):
    response = log_in(owner).post("/editions/vpc/register/", FIELDS | {"name": "  The \t Bats "})
    team = Team.objects.get()
    assert response.url == team.get_absolute_url()
    assert (team.name, team.state, team.label, team.number) == ("The Bats", "waiting", "", None)
    assert (team.country.code, team.is_academic, team.contact_email) == ("FR", True, "ada@uni.example")
    assert [(one.user, one.role) for one in team.memberships.all()] == [(owner, "owner")]
    assert last_action() == ("team.registered", owner, {})


def test_person_registers_one_team_and_another_after_it_is_over(log_in, edition, owner, organizer):
    client = log_in(owner)
    client.post("/editions/vpc/register/", FIELDS)
    again = client.post("/editions/vpc/register/", FIELDS | {"name": "Ants"})
    assert (again.status_code, Team.objects.count()) == (422, 1)
    assert (
        "You belong to the team “Bats” of this edition already"
        in client.get("/editions/vpc/register/").content.decode()
    )
    services.decline_team(team=Team.objects.get(), by=organizer, now=timezone.now())
    assert client.post("/editions/vpc/register/", FIELDS | {"name": "Ants"}).status_code == 302
    assert selectors.team_of(owner, edition).name == "Ants"


@pytest.mark.parametrize("name", ["ÉQUIPE Ⅳ", "E\u0301quipe IV"])
def test_name_is_taken_by_one_that_looks_the_same(edition, name):
    make_team(edition, name="Équipe IV")
    fields = FIELDS | {"name": name, "is_academic": True}
    sentence = f"Another team of this edition is called “{name}”. Choose another name."
    assert refused(services.register_team, edition=edition, by=make_user(), now=timezone.now(), **fields) == sentence


def test_link_of_an_organizer_registers_a_team_in_an_edition_that_is_not_listed(log_in, edition, owner, organizer):
    Edition.objects.update(is_listed=False, registration_closes_at=timezone.now())
    link = log_in(organizer).get("/editions/vpc/teams/").context["link"].partition("testserver")[2]
    other = selectors.registration_code(make_edition(name="other"), by=organizer, now=timezone.now())
    client = log_in(owner)
    for wrong in ("", "?invitation=", "?invitation=x", f"?invitation={other}", f"{link.rpartition('/')[2]}x"):
        assert client.post(f"/editions/vpc/register/{wrong}", FIELDS).status_code == 404, wrong
    assert "Register the team" in client.get(link).content.decode()
    assert client.post(link, FIELDS).status_code == 302
    team = Team.objects.get()
    assert (team.state, team.edition, selectors.team_of(owner, edition)) == ("waiting", edition, team)
    assert AuditEvent.objects.get(action="team.registered").data == {"by_link": True}
    assert client.get("/editions/vpc/").status_code == 200
    assert "You belong to the team “Bats” of this edition already" in client.get(link).content.decode()


def test_link_of_an_organizer_that_does_not_work_says_what_to_do(log_in, edition, owner, organizer):
    Edition.objects.update(is_listed=False)
    now, visitor = timezone.now(), Client()
    code = link_code(edition, organizer, now)
    ended = link_code(edition, organizer, now - timedelta(days=14))
    log_in(organizer).post("/editions/vpc/teams/new-link/", follow=True)
    edition.refresh_from_db()
    new = link_code(edition, organizer, now)
    assert AuditEvent.objects.get(action="edition.registration_link_replaced").actor == organizer
    sentences = {
        code: "The organizer has replaced this link. Ask for the new one.",
        new[:-1]: "The link is not complete: perhaps its end was lost when it was copied.",
        link_code(edition, organizer, now - timedelta(days=14)): f"This link ended on {now:%Y-%m-%d %H:%M} UTC.",
        ended: "The organizer has replaced this link.",
    }
    for given, sentence in sentences.items():
        for reader in (visitor, log_in(owner)):
            page = reader.get("/editions/vpc/register/", {"invitation": given})
            assert (page.status_code, sentence in page.content.decode()) == (404, True), sentence
    assert "invites you" in visitor.get("/editions/vpc/register/", {"invitation": new}).content.decode()
    assert log_in(owner).get("/editions/vpc/register/", {"invitation": new}).status_code == 200


def test_broken_link_to_an_edition_that_is_not_seen_says_as_much_as_to_none(client, edition):
    Edition.objects.update(is_listed=False)
    pages = [client.get(f"/editions/{name}/register/?invitation=x").content.decode() for name in ("vpc", "none")]
    assert len({page.replace("/vpc/", "/none/") for page in pages}) == 1


def link_code(edition, by, now):
    return selectors.registration_code(edition, by=by, now=now)


def decide(client, team, decision, note=""):
    return client.post(f"/teams/{team.pk}/decide/", {"decision": decision, "note": note}, follow=True)


def test_declined_team_asks_again_at_once_and_then_once_a_day(log_in, edition, team, owner, organizer):
    day, other = timedelta(days=1), make_user()
    now = timezone.now()
    services.decline_team(team=team, by=organizer, now=now, note="Who are you?")
    assert "Ask again" in log_in(owner).get(team.get_absolute_url()).content.decode()
    assert "Saving alone does not ask" in log_in(owner).get(f"/teams/{team.pk}/edit/").content.decode()
    response = log_in(owner).post(f"/teams/{team.pk}/ask-again/", follow=True)
    assert said(response) == [("success", "The organizer is asked again.")]
    team.refresh_from_db()
    assert (team.state, team.state_note) == ("waiting", "Who are you?")
    assert last_action()[:2] == ("team.asked_again", owner)
    mail = Job.objects.get(kind="send-notice", parameters__to="organizers").parameters
    assert (mail["members"], mail["subject"]) == ([organizer.pk], "the team “Bats” asks again")
    assert "only a declined team" in refused(services.ask_again, team=team, by=owner, now=now)
    services.decline_team(team=team, by=organizer, now=now)
    mail = " ".join(Job.objects.filter(kind="send-notice").latest("created_at").parameters["lines"])
    assert "no new reason. The earlier one was: Who are you?" in mail
    assert f"“Ask again” on its page, from {moment(team.asked_again_at + day)} on" in mail
    page = log_in(owner).get(team.get_absolute_url()).content.decode()
    assert ("No reason was given" in page, "Who are you?" in page) == (False, True)
    assert ("The team can ask again from" in page, "Ask again" in page) == (True, False)
    Team.objects.update(asked_again_at=now - day)
    make_team(edition, owner=other, members=[owner], name="Ants")
    assert "takes part in the team “Ants”" in refused(services.ask_again, team=team, by=owner, now=now)


def test_withdrawn_team_is_out_and_its_invitations_end(log_in, edition, team, owner, mailoutbox):
    client = log_in(owner)
    link = invite(client, team, "new@uni.example", mailoutbox)
    asked = client.get(f"/teams/{team.pk}/withdraw/").content.decode()
    assert '<ol><li><a href="/editions/">Editions</a></li>' in asked
    assert "can submit nothing more to" in asked
    assert '<button class="button danger">Withdraw the team</button>' in asked
    assert f'href="/teams/{team.pk}/withdraw/"' in client.get(team.get_absolute_url()).content.decode()
    assert services.find_active_team(owner, edition) == team
    response = client.post(f"/teams/{team.pk}/withdraw/", follow=True)
    assert said(response)[-1] == ("success", "The team is withdrawn.")
    team.refresh_from_db()
    assert (team.state, Invitation.objects.get().revoked_at is None) == ("withdrawn", False)
    assert "was revoked" in log_in(make_user(email="new@uni.example")).get(link).content.decode()
    assert refused(services.withdraw_team, team=team, by=owner) == "The team “Bats” is withdrawn already."
    assert services.find_active_team(owner, edition) is None


# Invitations


def invite(client, team, email, mailoutbox):
    """Invite by the page; the path of the link in the mail."""
    assert client.post(f"/teams/{team.pk}/invite/", {"email": email}).status_code == 302
    return link_in(mailoutbox[-1])


def link_in(mail):
    [link] = re.findall(r"^http\S+(/teams/invitations/\S+/)$", mail.body, re.MULTILINE)
    return link


def test_invitation_leads_from_the_mail_into_the_team(log_in, team, owner, mailoutbox):
    link = invite(log_in(owner), team, "New@Uni.example", mailoutbox)
    [mail] = mailoutbox
    assert (mail.to, mail.subject) == (["New@Uni.example"], "Challenge: invitation to the team “Bats”")
    assert "Owen invites you to the team “Bats”" in mail.body
    person = make_user(name="Nia", email="new@uni.example")
    client = log_in(person)
    assert "Join the team" in client.get(link).content.decode()
    assert team.memberships.count() == 1
    response = client.post(link, follow=True)
    assert said(response) == [("success", "You are a member of Bats now.")]
    assert team.memberships.get(user=person).role == Membership.Role.MEMBER
    assert last_action() == ("team.member_joined", person, {"member": "Nia", "email": "New@Uni.example"})
    again = client.post(link)
    assert [level for level, _ in said(again)] == ["error"]
    assert "each link serves once" in again.content.decode()


def test_secret_of_an_invitation_stands_nowhere_but_in_its_mail(log_in, team, owner, mailoutbox):
    secret = invite(log_in(owner), team, "new@uni.example", mailoutbox).split("/")[-2]
    assert len(secret) >= 43
    stored = str([list(model.objects.values()) for model in (Invitation, AuditEvent)])
    assert "new@uni.example" in stored
    assert secret not in stored
    assert secret not in log_in(owner).get(team.get_absolute_url()).content.decode()


def test_invitation_ends_after_a_fortnight_and_can_be_sent_again(log_in, team, owner, mailoutbox):
    link = invite(log_in(owner), team, "new@uni.example", mailoutbox)
    Invitation.objects.update(expires_at=timezone.now())
    person = make_user(email="new@uni.example")
    assert "This invitation ended on" in log_in(person).get(link).content.decode()
    old = Invitation.objects.get()
    response = log_in(owner).post(f"/teams/{team.pk}/invitations/{old.pk}/again/", follow=True)
    assert said(response)[0][0] == "success"
    new = link_in(mailoutbox[-1])
    assert new != link
    log_in(person).post(link)
    assert team.memberships.count() == 1
    log_in(person).post(new)
    assert team.memberships.count() == 2


@pytest.mark.parametrize(
    ("email", "sentence"),
    [
        ("OWNER@uni.example", "OWNER@uni.example belongs to the team already."),
        ("twice@uni.example", "twice@uni.example is invited already. Send that invitation again, or revoke it."),
    ],
)
def test_invitation_that_makes_no_sense_is_not_sent(log_in, edition, mailoutbox, email, sentence):
    owner = make_user(email="owner@uni.example")
    team = make_team(edition, owner=owner)
    client = log_in(owner)
    client.post(f"/teams/{team.pk}/invite/", {"email": "twice@uni.example"})
    response = client.post(f"/teams/{team.pk}/invite/", {"email": email})
    assert response.status_code == 422
    assert response.context["form"].errors["email"] == [sentence]
    assert len(mailoutbox) == 1


# Members


def test_member_leaves_and_owner_hands_over_first(log_in, team, owner):
    member = make_user(name="Mia")
    membership = team.memberships.create(user=member)
    offer = "you can leave after you have handed the team over"
    assert offer in read_page(log_in(owner).get(team.get_absolute_url()))
    response = log_in(owner).post(f"/teams/{team.pk}/leave/", follow=True)
    assert said(response) == [
        ("error", "Hand the team over to another member first, or withdraw it: a team has an owner.")
    ]
    log_in(owner).post(f"/teams/{team.pk}/members/{membership.pk}/transfer/")
    assert {(one.user, one.role) for one in team.memberships.all()} == {(owner, "member"), (member, "owner")}
    assert last_action() == ("team.transferred", owner, {"owner": "Mia"})
    response = log_in(owner).post(f"/teams/{team.pk}/leave/")
    assert response.url == "/editions/vpc/"
    assert [one.user for one in team.memberships.all()] == [member]
    assert offer not in read_page(log_in(member).get(team.get_absolute_url()))  # nobody is there to hand it to
    assert log_in(owner).get(team.get_absolute_url()).status_code == 404


def test_who_leaves_is_contact_person_no_more(team, owner):
    new = make_user(name="Mia", email="mia@uni.example")
    membership = team.memberships.create(user=new)
    Team.objects.update(contact=owner.name, contact_email=owner.email.upper())
    services.transfer_team(membership=membership, by=owner)
    team.refresh_from_db()
    assert team.contact == owner.name
    services.leave_team(team=team, by=owner)
    team.refresh_from_db()
    assert (team.contact, team.contact_email) == ("Mia", "mia@uni.example")
    mail = Job.objects.filter(kind="send-notice").order_by("created_at").last().parameters
    assert "The contact person of the team is Mia now." in mail["lines"][0]


def test_members_are_fixed_by_the_first_submission_except_for_the_organizer(log_in, team, owner, organizer, mailoutbox):
    member, late = make_user(name="Mia"), make_user(email="late@uni.example")
    membership = team.memberships.create(user=member)
    link = invite(log_in(owner), team, "late@uni.example", mailoutbox)
    Team.objects.update(state="approved", number=1)
    for person, said in ((owner, "end: late@uni.example. Let"), (member, "end: 1 of the team. Let")):
        assert said in log_in(person).get(f"/editions/{team.edition.name}/submit/").content.decode()
    first = timezone.now()
    services.freeze_members(team=team, now=first)
    services.freeze_members(team=team, now=first + timedelta(days=1))
    assert team.members_frozen_at == first
    assert AuditEvent.objects.get(action="team.members_frozen").data == {
        "members": ["Owen", "Mia"],
        "revoked_invitations": ["late@uni.example"],
    }
    fixed = "The members of “Bats” are fixed since the first accepted submission"
    assert f"This invitation was revoked. {fixed}" in log_in(late).get(link).content.decode()
    assert fixed in Client().get(link).content.decode()
    page = log_in(owner).get(team.get_absolute_url()).content.decode()
    assert "Their addresses get no mail of it: late@uni.example." in page
    assert "Nobody can be invited" in page

    log_in(late).post(link)
    log_in(member).post(f"/teams/{team.pk}/leave/")
    log_in(owner).post(f"/teams/{team.pk}/members/{membership.pk}/remove/")
    assert log_in(owner).post(f"/teams/{team.pk}/invite/", {"email": "x@uni.example"}).status_code == 422
    assert {one.user for one in team.memberships.all()} == {owner, member}
    page = log_in(member).get(team.get_absolute_url()).content.decode()
    assert f"{first:%Y-%m-%d %H:%M} UTC</time></strong>" in page
    assert "Leave the team" not in page

    log_in(organizer).post(f"/teams/{team.pk}/members/{membership.pk}/remove/")
    assert last_action() == ("team.member_removed", organizer, {"member": "Mia", "was_frozen": True})
    log_in(organizer).post(f"/teams/{team.pk}/release/")
    assert last_action() == ("team.members_released", organizer, {})
    link = invite(log_in(owner), team, "late@uni.example", mailoutbox)
    log_in(late).post(link)
    assert {one.user for one in team.memberships.all()} == {owner, late}
    assert refused(services.release_members, team=team, by=organizer) == "The members of “Bats” are not fixed."
