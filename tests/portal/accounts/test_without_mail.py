"""Who is invited gets in by the link alone; who is not is let in by an operator, who sees on People that they wait."""

import re
from html import unescape

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.test import Client
from django.utils import timezone
from django.utils.html import strip_tags

from portal.accounts.models import User
from portal.core.models import AuditEvent
from portal.editions.forms import EditionForm
from portal.teams.selectors import registration_code
from tests.pages import read_page
from tests.portal.factories import make_edition, make_operator, make_team, make_user

pytestmark = pytest.mark.django_db
PASSWORD = "a long password"
LINK = re.compile(r"http://\S+?/(?:sign-up/confirm|password|teams/invitations)/[^\s<\"]+")


@pytest.fixture(autouse=True)
def without_mail_server(settings):
    settings.MAIL_SERVER = None


@pytest.fixture
def operator():
    return make_operator()


@pytest.fixture
def desk(operator):
    """The browser of the operator."""
    client = Client()
    client.force_login(operator)
    return client


def sign_up(client, email, link="", **more):
    sent = {"name": "Nia", "email": email, "password1": PASSWORD} | more
    return client.post(f"/sign-up/?next={link}", sent)


def log_in(client, email, link="", password=PASSWORD):
    return client.post(f"/log-in/?next={link}", {"login": email, "password": password})


def is_in(client):
    return "_auth_user_id" in client.session


def link_on(page):
    """The path of the link that a page shows."""
    return "/" + unescape(LINK.search(page.content.decode())[0]).split("/", 3)[3]


def invited_by(team, email="nia@test.example"):
    """The path of the link that the owner of a team is shown."""
    owner = Client()
    owner.force_login(team.memberships.get(role="owner").user)
    return link_on(owner.post(f"/teams/{team.pk}/invite/", {"email": email}))


def test_link_that_the_inviter_passes_on_lets_the_invited_sign_up_and_join(client):
    team = make_team(make_edition())
    link = invited_by(team)
    assert f"/sign-up/?next={link}&amp;email=nia%40test.example" in client.get(link).content.decode()
    assert sign_up(client, "Nia@test.example", link).headers["Location"] == link
    assert is_in(client)
    assert client.post(link).headers["Location"] == f"/teams/{team.pk}/"
    assert EmailAddress.objects.get(email="nia@test.example").verified


# Who vouched ----------------------------------------------------------------------------------------


def add_organizer(by, edition, email):
    """What the API answers to an organizer who adds somebody by their address."""
    client = Client()
    client.force_login(by)
    people = {"organizers": [by.email, email]}
    return client.patch(f"/api/editions/{edition.name}/", people, content_type="application/json")


def join(link, email, *, had_account):
    """Somebody signs up by a link, or did before and logs in by it."""
    if had_account:
        sign_up(Client(), email)
    client = Client()
    (log_in if had_account else sign_up)(client, email, link)
    assert is_in(client)
    return User.objects.get(email=email)


@pytest.mark.parametrize("had_account", [False, True])
def test_page_of_a_person_says_whose_invitation_vouched_until_an_operator_confirms_the_address(desk, had_account):
    team = make_team(make_edition())
    nia = join(invited_by(team), "nia@test.example", had_account=had_account)
    event = AuditEvent.objects.get(action="account.address-confirmed")
    owner, invitation = team.memberships.get(role="owner").user, team.invitations.get()
    assert (event.actor, event.subject_id) == (owner, str(nia.pk))
    assert event.data == {"address": nia.email, "shown_by": "invitation", "key": str(invitation.pk)}
    said = f"Address vouched for by {owner}’s invitation, not shown by mail."
    assert said in strip_tags(read_page(desk.get(f"/people/{nia.pk}/")))
    desk.post(f"/people/{nia.pk}/confirm/")
    assert "vouched for" not in read_page(desk.get(f"/people/{nia.pk}/"))
    assert "is confirmed already" in desk.post(f"/people/{nia.pk}/confirm/", follow=True).content.decode()


@pytest.mark.parametrize("had_account", [False, True])
def test_address_that_a_member_vouched_for_makes_nobody_an_organizer_until_an_operator_confirms_it(desk, had_account):
    edition = make_edition()
    organizer = edition.organizers.get()
    boss = join(invited_by(make_team(edition), "boss@inst.example"), "boss@inst.example", had_account=had_account)
    answer = add_organizer(organizer, edition, boss.email)
    sentence = (
        f"Only an invitation vouches that the address boss@inst.example is that of {boss}; no mail has shown it. Ask "
        "an operator to confirm it on the person’s page under People."
    )
    assert (answer.status_code, sentence in str(answer.json())) == (400, True)
    form = EditionForm({"organizers": f"{organizer.email} {boss.email}"}, user=organizer, edition=edition)
    assert form.errors["organizers"] == [sentence]
    desk.post(f"/people/{boss.pk}/confirm/")
    assert add_organizer(organizer, edition, boss.email).status_code == 200
    assert set(edition.organizers.all()) == {organizer, boss}


def test_link_of_an_organizer_vouches_for_organizers_of_that_edition_alone():
    edition, other = make_edition(), make_edition(name="other", organizers=[make_user(is_organizer=True)])
    organizer = edition.organizers.get()
    code = registration_code(edition, by=organizer, now=timezone.now())
    nia = join(f"/editions/{edition.name}/register/?invitation={code}", "nia@test.example", had_account=False)
    assert add_organizer(other.organizers.get(), other, nia.email).status_code == 400
    assert add_organizer(organizer, edition, nia.email).status_code == 200


# Links and who waits --------------------------------------------------------------------------------


def test_link_of_an_invitation_confirms_no_other_address(client):
    link = invited_by(make_team(make_edition()))
    page = sign_up(client, "eve@test.example", link)
    assert page.context["form"].errors["email"] == [
        "The invitation is for nia@test.example. Sign up with that address, or ask the team to invite this one."
    ]
    assert not User.objects.filter(email="eve@test.example").exists()


def test_what_is_no_link_of_an_invitation_confirms_nothing(client):
    assert (
        sign_up(client, "nia@test.example", "/teams/invitations/nonsense/")
        .headers["Location"]
        .startswith("/sign-up/mailed/")
    )
    assert not is_in(client)


def test_who_signed_up_before_the_invitation_is_let_in_by_its_link(client):
    sign_up(client, "nia@test.example")
    link = invited_by(make_team(make_edition()))
    assert not is_in(client)
    assert log_in(client, "nia@test.example", link).headers["Location"] == link
    assert is_in(client)


def test_link_to_register_a_team_lets_whoever_holds_it_in(client):
    edition = make_edition(is_listed=False)
    code = registration_code(edition, by=edition.organizers.get(), now=timezone.now())
    link = f"/editions/{edition.name}/register/?invitation={code}"
    assert sign_up(client, "owner@test.example", link).headers["Location"] == link
    assert client.get(link).status_code == 200
    stranger = Client()
    sign_up(stranger, "eve@test.example", f"/editions/{edition.name}/register/?invitation={code}x")
    assert not is_in(stranger)


def test_link_to_register_a_team_confirms_nothing_where_mail_can(client, settings):
    settings.MAIL_SERVER = "smtp://mail.example"
    edition = make_edition()
    code = registration_code(edition, by=edition.organizers.get(), now=timezone.now())
    sign_up(client, "owner@test.example", f"/editions/{edition.name}/register/?invitation={code}")
    assert not is_in(client)


def test_operator_confirms_who_waits_and_they_log_in(client, desk):
    waiting = sign_up(client, "nia@test.example")
    page = client.get(waiting.headers["Location"]).content.decode()
    assert "The operator of this portal will confirm your address." in page
    nia = User.objects.get(email="nia@test.example")
    assert "Somebody waits for you" in desk.get("/").content.decode()
    assert list(desk.get("/people/?show=waiting").context["page"].object_list) == [nia]
    desk.post(f"/people/{nia.pk}/confirm/")
    assert list(desk.get("/people/?show=waiting").context["page"].object_list) == []
    assert log_in(client, nia.email).headers["Location"] == "/"
    assert AuditEvent.objects.filter(action="account.address-confirmed", subject_id=str(nia.pk)).count() == 1


def test_operator_passes_on_the_link_for_a_new_password(client, desk):
    user = make_user()
    page = client.post("/password/", {"email": user.email}, follow=True).content.decode()
    assert "The operator of this portal will give you a link" in page
    assert list(desk.get("/people/?show=waiting").context["page"].object_list) == [user]
    link = link_on(desk.post(f"/people/{user.pk}/password/"))
    address = client.get(link, follow=True).redirect_chain[-1][0]
    client.post(address, {"password1": "quite another one", "password2": "quite another one"})
    assert is_in(client)
    assert list(desk.get("/people/?show=waiting").context["page"].object_list) == []


def test_new_password_ends_the_wait_of_who_is_not_logged_in_by_it(client, desk):
    user = make_user()
    client.post("/password/", {"email": user.email})
    Authenticator.objects.create(user=user, type="totp", data={"secret": "x"})
    address = client.get(link_on(desk.post(f"/people/{user.pk}/password/")), follow=True).redirect_chain[-1][0]
    client.post(address, {"password1": "quite another one", "password2": "quite another one"})
    assert not is_in(client)
    assert list(desk.get("/people/?show=waiting").context["page"].object_list) == []


def test_operator_sees_who_waits_for_a_link_to_confirm_that_a_mail_server_did_not_take(client, desk, settings):
    settings.MAIL_SERVER = "smtp://mail.example"
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9
    sign_up(client, "nia@test.example")
    [nia] = desk.get("/people/?show=waiting").context["page"].object_list
    page = desk.get(f"/people/{nia.pk}/")
    assert "No mail could be sent there." in page.content.decode()
    Client().post(link_on(page))
    assert EmailAddress.objects.get(user=nia).verified
    assert list(desk.get("/people/?show=waiting").context["page"].object_list) == []


def test_address_that_is_to_replace_another_is_confirmed_by_the_operator(desk):
    user, own = make_user(), Client()
    own.force_login(user)
    EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)
    EmailAddress.objects.create(user=user, email="new@test.example", verified=False, primary=False)
    desk.post(f"/people/{user.pk}/confirm/")
    user.refresh_from_db()
    assert user.email == "new@test.example"
    assert [one.email for one in EmailAddress.objects.filter(user=user)] == ["new@test.example"]


def test_address_of_another_account_is_not_confirmed(desk):
    taken, user = make_user(email="taken@test.example"), make_user()
    EmailAddress.objects.create(user=user, email=taken.email, verified=False, primary=False)
    page = desk.post(f"/people/{user.pk}/confirm/", follow=True).content.decode()
    assert "taken@test.example belongs to another account." in page
    assert not EmailAddress.objects.get(user=user).verified
