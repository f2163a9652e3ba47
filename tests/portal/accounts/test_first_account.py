"""The first account: one address for the person who started the portal, until there is an operator."""

import io
import re
from threading import Barrier, Thread

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from portal.accounts.first_account import is_first_secret, make_first_account, renew_first_address
from portal.accounts.models import FirstAccountToken, User
from portal.core.models import AuditEvent
from tests.portal.factories import make_operator, make_user

pytestmark = pytest.mark.django_db
FIELDS = {"name": "Ada Lovelace", "email": "Ada@Test.example", "password1": "a long password"}


def printed(**options):
    out = io.StringIO()
    call_command("first_account", stdout=out, **options)
    return out.getvalue()


def path_of(address):
    return address.removeprefix("https://portal.example.org")


@pytest.fixture
def path(settings):
    settings.SITE_URL = "https://portal.example.org"
    return path_of(renew_first_address())


def test_first_person_becomes_operator_and_organizer_at_the_printed_address(client, settings):
    settings.SITE_URL = "https://portal.example.org"
    [address] = re.findall(r"https://portal\.example\.org/first-account/[\w-]{32}/", printed())
    assert path_of(address).split("/")[2] not in str(FirstAccountToken.objects.values())
    page = client.get(path_of(address))
    assert (page.status_code, "no-store" in page.headers["Cache-Control"]) == (200, True)
    answer = client.post(path_of(address), FIELDS)
    assert answer.headers["Location"] == "/"
    user = User.objects.get()
    assert (user.email, user.is_staff, user.is_superuser, user.is_organizer) == ("ada@test.example", True, True, True)
    assert client.get("/operations/").status_code == 200
    assert AuditEvent.objects.get(action="account.first-made").actor == user
    assert Client().post("/log-in/", {"login": user.email, "password": FIELDS["password1"]}).headers["Location"] == "/"
    assert [Client().get(path_of(address)).status_code, client.get(path_of(address)).status_code] == [404, 404]


def test_address_opens_nothing_once_there_is_an_operator(client, path):
    make_user()
    assert client.get(path).status_code == 200
    make_operator(is_active=False)
    assert client.get(path).status_code == 200
    make_operator()
    assert [client.get(path).status_code, client.post(path, FIELDS).status_code] == [404, 404]
    assert renew_first_address() == ""
    assert printed(if_needed=True) == ""
    with pytest.raises(CommandError, match="has an operator"):
        printed()


def test_person_with_an_account_takes_the_roles_with_it(client, path):
    user = make_user()
    taken = client.post(path, FIELDS | {"email": user.email.upper()})
    assert (taken.status_code, User.objects.count()) == (422, 1)
    assert "has an account: log in" in taken.content.decode()
    client.force_login(user)
    assert user.email in client.get(path).content.decode()
    assert client.post(path).headers["Location"] == "/"
    user.refresh_from_db()
    assert (user.is_staff, user.is_organizer) == (True, True)
    assert client.get(path).status_code == 404


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_of_two_at_once_one_makes_the_account(settings):
    settings.SITE_URL = "https://portal.example.org"
    secret = path_of(renew_first_address()).split("/")[2]
    start, refused = Barrier(2), []

    def make(number):
        try:
            start.wait()
            make_first_account(secret=secret, email=f"a{number}@test.example", name="A", password="a long password")
        except LookupError as error:
            refused.append(str(error))
        finally:
            connection.close()

    both = [Thread(target=make, args=[number]) for number in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert (User.objects.count(), refused) == (1, ["This address is not valid any more."])
    assert not is_first_secret(secret)
