"""People as the operator looks after them: who is invited how, who may do what, and that somebody is always left."""

import re
from threading import Barrier, Thread

import pytest
from django.core import mail
from django.db import connection
from django.test import Client

from common.errors import NotPossible
from portal.accounts.models import User
from portal.accounts.people import change_roles
from portal.accounts.selectors import operators
from portal.core.models import AuditEvent
from tests.pages import read_page
from tests.portal.factories import make_operator, make_organizer, make_user

pytestmark = pytest.mark.django_db
PASSWORD = "quite another secret 7"


@pytest.fixture
def operator(client):
    user = make_operator(name="Olga Operator")
    client.force_login(user)
    return user


def invite(client, email="Ida@Test.example", **fields):
    return client.post("/people/invite/", {"email": email, **fields})


def roles_of(user):
    user.refresh_from_db()
    return user.is_organizer, user.is_staff, user.is_superuser


def test_invited_person_chooses_a_password_by_the_shown_link_and_has_the_role(client, operator):
    page = invite(client, name="Ida Invited", roles=["organizer"]).content.decode()
    [path] = re.findall(r'<code class="copyable">http://[^/]+(/password/[^<]+)</code>', page)
    person = User.objects.get(email="ida@test.example")
    assert roles_of(person) == (True, False, False)
    assert path in mail.outbox[0].body
    assert "Olga Operator invites you" in mail.outbox[0].body
    invited = Client()
    form = invited.get(path, follow=True)
    assert "For the account <strong>ida@test.example" in form.content.decode()
    answer = invited.post(form.request["PATH_INFO"], {"password1": PASSWORD, "password2": PASSWORD})
    assert answer.headers["Location"] == "/"
    assert invited.get("/corpora/").status_code == 200
    assert "This link does not work" in Client().get(path, follow=True).content.decode()
    assert AuditEvent.objects.get(action="account.invited").actor == operator


def test_invitation_is_not_shown_where_it_is_mailed(client, operator, settings):
    settings.MAIL_SERVER = object()
    answer = invite(client)
    person = User.objects.get(email="ida@test.example")
    assert answer.headers["Location"] == f"/people/{person.pk}/"
    assert "password/" not in client.get(answer.headers["Location"]).content.decode()
    assert len(mail.outbox) == 1


def test_invitation_is_shown_where_its_mail_cannot_be_sent(client, operator, settings):
    settings.MAIL_SERVER = object()
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_PORT = 1
    page = read_page(invite(client))
    assert "The mail could not be sent" in page
    assert "/password/" in page


def test_new_link_is_made_for_those_only_who_have_no_password(client, operator):
    invite(client)
    person = User.objects.get(email="ida@test.example")
    assert "/password/" in client.post(f"/people/{person.pk}/invite/").content.decode()
    other = make_user()
    answer = client.post(f"/people/{other.pk}/invite/", follow=True)
    assert f"{other} has no open invitation." in read_page(answer)
    assert len(mail.outbox) == 2


def test_roles_are_given_and_taken(client, operator):
    person = make_user()
    for sent, kept in ((["organizer", "operator"], (True, True, True)), (["organizer"], (True, False, False))):
        client.post(f"/people/{person.pk}/", {"roles": sent})
        assert roles_of(person) == kept
    assert AuditEvent.objects.filter(action="account.roles-changed", actor=operator).count() == 2


def test_last_operator_keeps_the_role_and_the_account(client, operator):
    invite(client, roles=["operator"])  # has no password yet
    make_operator(is_active=False)
    answer = client.post(f"/people/{operator.pk}/", {"roles": []}, follow=True)
    assert "the only operator who can log in" in read_page(answer)
    assert "cannot deactivate your own" in read_page(client.post(f"/people/{operator.pk}/deactivate/", follow=True))
    assert roles_of(operator) == (False, True, True)
    make_operator()
    assert client.post(f"/people/{operator.pk}/", {"roles": []}).status_code == 302
    assert roles_of(operator) == (False, False, False)


def test_deactivated_person_is_out_until_reactivated(client, operator):
    person = make_organizer()
    theirs = Client()
    theirs.force_login(person)
    client.post(f"/people/{person.pk}/deactivate/")
    assert theirs.get("/corpora/").status_code == 302
    assert "deactivated already" in read_page(client.post(f"/people/{person.pk}/deactivate/", follow=True))
    client.post(f"/people/{person.pk}/reactivate/")
    theirs.force_login(person)
    assert theirs.get("/corpora/").status_code == 200
    assert "is active." in read_page(client.post(f"/people/{person.pk}/reactivate/", follow=True))


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_two_operators_who_take_the_role_from_each_other_leave_one():
    first, second = make_operator(), make_operator()
    start, refused = Barrier(2), []

    def take(user, by):
        try:
            start.wait()
            change_roles(user=user, by=by, is_organizer=False, is_operator=False)
        except NotPossible as reason:
            refused.append(str(reason))
        finally:
            connection.close()

    both = [Thread(target=take, args=pair) for pair in ((first, second), (second, first))]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert (operators().count(), len(refused)) == (1, 1)
