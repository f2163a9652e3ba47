"""Accounts as a person's own client meets them: from the sign-up to the log-out, and what strangers may not learn."""

import re

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal import auth as totp
from django.contrib.auth.hashers import MD5PasswordHasher
from django.core import mail
from django.core.cache import cache
from django.test import Client

from portal.accounts.models import User
from portal.accounts.selectors import waiting
from portal.core.models import AuditEvent
from tests.pages import read_page
from tests.portal.factories import make_edition, make_operator, make_user

pytestmark = pytest.mark.django_db
PASSWORD = "a long password"
NEW = "quite another secret 7"


def sign_up(client, email="ada@test.example", name="Ada Lovelace", **more):
    return client.post("/sign-up/", {"name": name, "email": email, "password1": PASSWORD} | more)


def log_in(client, email, password=PASSWORD, **more):
    return client.post("/log-in/", {"login": email, "password": password, **more})


def link_of(message):
    """The path of the first link in a mail that holds a secret."""
    return re.search(r"http://testserver(/(?:sign-up/confirm|password)/\S+)", message.body)[1]


def is_logged_in(client):
    return client.get("/account/").status_code == 200


def errors_of(response):
    found = re.search(r'<div class="error-summary".*?</div>', response.content.decode(), re.DOTALL)
    return re.findall(r"<li>(?:<a[^>]*>)?(.*?)(?:</a>)?</li>", found[0]) if found else []


def code_of(user, steps=0):
    """What the app on the phone of a user shows, now or so many half minutes later."""
    secret = Authenticator.objects.get(user=user, type="totp").data["secret"]
    counter = next(totp.yield_hotp_counters_from_time()) + steps
    return totp.format_hotp_value(totp.hotp_value(secret, counter))


def switch_second_factor_on(client):
    """Set the second factor up through the pages; the recovery codes as they are shown."""
    assert client.get("/account/second-factor/app/").headers["Location"].startswith("/account/confirm/?next=")
    client.post("/account/confirm/?next=/account/second-factor/app/", {"password": PASSWORD})
    page = client.get("/account/second-factor/app/").content.decode()
    secret = re.search(r'<code class="copyable">(\w+)</code>', page)[1]
    code = totp.format_hotp_value(totp.hotp_value(secret, next(totp.yield_hotp_counters_from_time())))
    answer = client.post("/account/second-factor/app/", {"code": code})
    assert answer.headers["Location"] == "/account/second-factor/codes/", errors_of(answer)
    return re.findall(r"<li><code>(\w+)</code></li>", client.get("/account/second-factor/codes/").content.decode())


# From the sign-up to the log-out ------------------------------------------------------------------


def test_sign_up_leads_by_the_mailed_link_to_the_page_that_was_wanted(client):
    answer = client.post(
        "/sign-up/?next=/account/tokens/", {"name": "Ada Lovelace", "email": "Ada@Test.example", "password1": PASSWORD}
    )
    assert answer.headers["Location"] == "/sign-up/mailed/?next=%2Faccount%2Ftokens%2F"
    assert "/log-in/?next=%2Faccount%2Ftokens%2F" in client.get(answer.headers["Location"]).content.decode()
    assert not is_logged_in(client)
    [message] = mail.outbox
    assert (message.to, message.subject) == (["ada@test.example"], "Confirm your e-mail address")
    assert "Hello Ada Lovelace," in message.body
    assert "Is this your address?" in read_page(client.get(link_of(message)))
    assert client.post(link_of(message)).headers["Location"] == "/account/tokens/"
    assert is_logged_in(client)
    user = User.objects.get()
    assert (user.email, user.name, user.is_organizer, user.is_staff) == (
        "ada@test.example",
        "Ada Lovelace",
        False,
        False,
    )
    assert AuditEvent.objects.get(action="account.signed-up").actor == user


def test_link_in_the_mail_leads_to_no_other_site(client):
    client.post("/sign-up/?next=https://evil.example/", {"name": "A", "email": "a@test.example", "password1": PASSWORD})
    assert "evil" not in mail.outbox[0].body


def test_account_opens_only_after_its_address_is_confirmed(client):
    sign_up(client)
    stranger = Client()
    assert log_in(stranger, "ada@test.example").headers["Location"] == "/sign-up/mailed/"
    assert not is_logged_in(stranger)
    elsewhere = Client()
    elsewhere.post(link_of(mail.outbox[0]))
    assert not is_logged_in(elsewhere), "the link confirms an address; by itself it logs nobody in"
    assert log_in(elsewhere, "ada@test.example").headers["Location"] == "/"
    assert is_logged_in(elsewhere)


# Passwords and addresses --------------------------------------------------------------------------


def test_forgotten_password_is_chosen_anew_by_the_mailed_link(client):
    user = make_user()
    elsewhere = Client()
    log_in(elsewhere, user.email)
    assert client.post("/password/", {"email": user.email}).headers["Location"] == "/password/mailed/"
    [message] = mail.outbox
    form = client.get(link_of(message), follow=True)
    assert "Choose a new password" in form.content.decode()
    [(address, _)] = form.redirect_chain
    too_short = client.post(address, {"password1": "short", "password2": "short"})
    assert len(errors_of(too_short)) == 1
    assert client.post(address, {"password1": NEW, "password2": NEW}).headers["Location"] == "/"
    assert is_logged_in(client), "who holds the mailed link is the owner"
    assert not is_logged_in(elsewhere), "who was logged in with the old password is out"
    assert errors_of(log_in(elsewhere, user.email)) != []
    assert log_in(elsewhere, user.email, NEW).headers["Location"] == "/"
    assert "This link does not work" in Client().get(link_of(message), follow=True).content.decode()
    assert mail.outbox[-1].subject == "Your password was changed"


def test_address_changes_when_the_link_mailed_to_the_new_one_is_opened(client):
    user = make_user()
    old = user.email
    log_in(client, old)
    client.post("/account/confirm/?next=/account/e-mail/", {"password": PASSWORD})
    client.post("/account/e-mail/", {"email": "new@test.example", "action_add": ""})
    assert "new@test.example is not confirmed yet" in client.get("/account/e-mail/").content.decode()
    user.refresh_from_db()
    assert user.email == old
    assert mail.outbox[-1].to == ["new@test.example"]
    client.post(link_of(mail.outbox[-1]))
    user.refresh_from_db()
    assert user.email == "new@test.example"
    assert mail.outbox[-1].to == [old], "the old address is told"
    assert [row.email for row in EmailAddress.objects.all()] == ["new@test.example"]


# The second factor --------------------------------------------------------------------------------


def test_second_factor_is_asked_for_at_the_next_log_in(client):
    user = make_user()
    log_in(client, user.email)
    codes = switch_second_factor_on(client)
    assert len(codes) == 10
    client.post("/log-out/")
    assert log_in(client, user.email, next="/account/").headers["Location"] == "/log-in/second-factor/"
    assert not is_logged_in(client)
    wrong = client.post("/log-in/second-factor/", {"code": "000000"})
    assert errors_of(wrong) == ["Code: This code is wrong or has expired: an app shows a new one every 30 seconds."]
    cache.clear()  # the code of the set-up may be used again only in the next half minute
    assert client.post("/log-in/second-factor/", {"code": code_of(user)}).headers["Location"] == "/account/"
    assert is_logged_in(client)


@pytest.mark.parametrize("role", ["operator", "organizer of an edition"])
def test_organizers_and_operators_need_a_second_factor_where_it_is_required(client, settings, role):
    user = make_user(is_staff=role == "operator")
    if role == "organizer of an edition":
        make_edition(organizers=[user])
    log_in(client, user.email)
    asked = "Your account has no second factor"
    assert asked in read_page(client.get("/")), "asked for, not required"
    settings.SECOND_FACTOR_REQUIRED = True
    setting_up = "/account/second-factor/app/"
    assert {client.get(page).headers.get("Location") for page in ("/", "/corpora/", "/admin/")} == {setting_up}
    assert client.post("/editions/new/").headers["Location"] == setting_up
    client.post("/account/tokens/", {"name": "t", "scopes": ["read"], "days": "30"})
    assert (client.get("/account/tokens/").headers.get("Location"), user.access_tokens.count()) == (setting_up, 0)
    assert "set it up here first" in read_page(client.get(setting_up, follow=True))
    assert (client.get("/api/me").status_code, is_logged_in(client)) == (403, True)
    switch_second_factor_on(client)
    home = client.get("/")
    assert (home.status_code, asked in read_page(home)) == (200, False)


# What strangers may not learn or do ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("send", "told_known", "told_unknown"),
    [
        (sign_up, "You have an account already", "Confirm your e-mail address"),
        (
            lambda client, email: client.post("/password/", {"email": email}),
            "Choose a new password",
            "There is no account with this address",
        ),
        (lambda client, email: log_in(client, email, "guess"), None, None),
    ],
    ids=["sign-up", "forgotten password", "log-in"],
)
def test_no_form_tells_whether_an_address_has_an_account(send, told_known, told_unknown):
    known, unknown = make_user().email, "nobody@test.example"
    answers = [send(Client(), email) for email in (known, unknown)]
    assert answers[0].status_code == answers[1].status_code
    assert answers[0].headers.get("Location") == answers[1].headers.get("Location")
    assert errors_of(answers[0]) == errors_of(answers[1])
    told = {message.to[0]: message.subject for message in mail.outbox}
    assert (told.get(known), told.get(unknown)) == (told_known, told_unknown)


class CountingHasher(MD5PasswordHasher):
    """Stands for the slow hasher: what takes long is counted."""

    algorithm = "counting"
    encoded = 0

    def encode(self, password, salt):
        CountingHasher.encoded += 1
        return super().encode(password, salt)


@pytest.mark.parametrize("send", [sign_up, log_in], ids=["sign-up", "log-in"])
def test_no_form_tells_by_its_time_whether_an_address_has_an_account(send, settings):
    settings.PASSWORD_HASHERS = [f"{__name__}.CountingHasher"]
    known = make_user().email
    work = []
    for email in (known, "nobody@test.example"):
        before = CountingHasher.encoded
        send(Client(), email)
        work.append(CountingHasher.encoded - before)
    assert work == [1, 1]


def test_guessing_of_a_password_is_stopped_with_a_sentence(client):
    user = make_user()
    for _ in range(5):
        errors = errors_of(log_in(client, user.email, "guess"))
        assert errors == ["No account has this e-mail address with this password. Passwords are case-sensitive."]
    [sentence] = errors_of(log_in(client, user.email))
    assert sentence.startswith("Too many failed attempts. Wait five minutes")
    page = log_in(client, user.email).content.decode()
    assert ("You are not logged in" in page, "Please correct this first" in page) == (True, False)
    assert not is_logged_in(client), "not even with the right password"
    other = make_user()
    assert log_in(client, other.email).headers["Location"] == "/"


def test_guesses_of_strangers_close_nobody_elses_door():
    """From another address, from one's own browser and by mail the owner gets in while somebody else guesses."""
    user, other = make_user(), make_user()
    own, strange = Client(REMOTE_ADDR="192.0.2.7"), Client(REMOTE_ADDR="192.0.2.7")
    log_in(own, user.email)
    own.post("/log-out/")
    for _ in range(6):
        log_in(Client(REMOTE_ADDR="198.51.100.1"), user.email, "guess")
    assert log_in(strange, user.email).headers["Location"] == "/"
    strange.post("/log-out/")
    for number in range(20):
        log_in(Client(REMOTE_ADDR=f"203.0.113.{number}"), user.email, "guess")
    unknown = Client(REMOTE_ADDR="192.0.2.8")
    assert errors_of(log_in(unknown, user.email))[0].startswith("Too many"), "guesses from many addresses are slowed"
    assert log_in(own, user.email).headers["Location"] == "/"
    assert log_in(strange, other.email).headers["Location"] == "/"


def test_closed_account_stays_closed(client):
    user = make_user(is_active=False)
    assert log_in(client, user.email).headers["Location"] == "/log-in/closed/"
    assert not is_logged_in(client)
    assert errors_of(log_in(client, user.email, "guess")) == errors_of(log_in(client, "no@test.example", "guess"))
    client.post("/password/", {"email": user.email})
    assert mail.outbox[-1].subject == "There is no account with this address"


# The admin's door ---------------------------------------------------------------------------------


def test_admin_has_no_log_in_of_its_own(client):
    operator = make_operator()
    assert client.get("/admin/accounts/user/").headers["Location"] == "/admin/login/?next=/admin/accounts/user/"
    door = client.get("/admin/login/?next=/admin/accounts/user/")
    assert door.headers["Location"] == "/log-in/?next=/admin/accounts/user/"
    posted = client.post("/admin/login/", {"username": operator.email, "password": PASSWORD})
    assert posted.headers["Location"] == "/log-in/?next=/admin/"
    assert not is_logged_in(client)
    log_in(client, operator.email)
    assert client.get("/admin/login/?next=//evil.example/").headers["Location"] == "/admin/"
    assert client.get("/admin/accounts/user/").status_code == 200
    client.force_login(make_user())
    assert client.get("/admin/login/").status_code == 404


# Mail ---------------------------------------------------------------------------------------------


def test_mail_that_cannot_be_sent_is_said_and_the_account_can_be_confirmed_later(client, settings):
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9
    for answer in (sign_up(client), client.post("/password/", {"email": "ada@test.example"})):
        assert (answer.status_code, "The mail could not be sent" in answer.content.decode()) == (503, True)
        assert [one.email for one in waiting()] == ["ada@test.example"]
        User.objects.update(waits_for_link_since=None)
    cache.clear()
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    log_in(client, "ada@test.example")
    client.post(link_of(mail.outbox[-1]))
    assert log_in(Client(), "ada@test.example").headers["Location"] == "/"


def test_name_is_one_line_without_signs_that_cannot_be_seen(client):
    """It stands in mails to people who have no account: nobody writes paragraphs or commands of a terminal there."""
    unseen = "Name: Use letters, digits and signs only; found the invisible character "
    assert errors_of(sign_up(client, name="Ada\x1b[31m")) == [f"{unseen}U+001B."]
    sign_up(client, name="Ada\n\nVisit https://trap.example")
    user = User.objects.get()
    assert user.name == "Ada Visit https://trap.example"
    client.force_login(user)
    assert errors_of(client.post("/account/", {"name": "Ada\u202e"})) == [f"{unseen}U+202E."]
    client.post("/account/", {"name": "Ada\nLovelace"})
    user.refresh_from_db()
    assert user.name == "Ada Lovelace"


@pytest.mark.parametrize(
    ("came_from", "wanted"),
    [
        ("http://testserver/account/tokens/?page=2", "/account/tokens/%3Fpage%3D2"),
        ("http://elsewhere.example/x/", "/account/"),
        ("", "/account/"),
    ],
)
@pytest.mark.django_db
def test_who_was_logged_out_is_told_that_nothing_was_saved(client, came_from, wanted):
    answer = client.post("/account/", {"name": "Ada"}, headers={"referer": came_from})
    assert answer.headers["Location"] == f"/log-in/?next={wanted}&unsaved=1"
    assert "so nothing was saved" in client.get(answer.headers["Location"]).content.decode()
    assert "nothing was saved" not in client.get("/log-in/?next=/account/").content.decode()
