"""Accounts as people meet them: each page at two widths and in both schemes, and the ways through them."""

import re

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal import auth as totp
from django.core import mail
from django.core.cache import cache
from django.utils import timezone

from portal.accounts.addresses import vouch_for_address
from portal.accounts.models import User
from portal.accounts.tokens import create_token
from tests.portal.factories import make_organizer, make_user

PASSWORD = "a long password"


def fill(page, button, **fields):
    for name, value in fields.items():
        page.locator(f"[name={name}]").fill(value)
    page.get_by_role("button", name=button, exact=True).click()


def log_in(page, user, wanted="/account/"):
    page.goto(f"/log-in/?next={wanted}")
    fill(page, "Log in", login=user.email, password=PASSWORD)


def link_in_mail():
    return re.search(r"http://\S+/(?:sign-up/confirm|password)/\S+", mail.outbox[-1].body)[0]


def code_for(secret):
    return totp.format_hotp_value(totp.hotp_value(secret, next(totp.yield_hotp_counters_from_time())))


@pytest.mark.parametrize(
    "address",
    [
        "/log-in/",
        "/log-in/?next=/account/",
        "/log-in/closed/",
        "/sign-up/",
        "/sign-up/mailed/",
        "/sign-up/confirm/nonsense/",
        "/password/",
        "/password/mailed/",
        "/password/changed/",
        "/password/1-nonsense/",
    ],
)
def test_pages_of_the_door_pass_the_check(page, check_page, address):
    page.goto(address)
    check_page(page, "door-" + re.sub(r"\W+", "-", address).strip("-"))


def test_way_from_the_sign_up_to_the_log_out(page, check_page):
    page.goto("/sign-up/")
    fill(page, "Sign up", name="", email="ada", password1="password")
    assert page.locator(".error-summary li").count() == 3
    check_page(page, "sign-up-errors")
    fill(page, "Sign up", name="Ada Lovelace", email="ada@test.example", password1=PASSWORD)
    assert page.title().startswith("Open the link in your mail")
    check_page(page, "sign-up-mailed")
    page.goto(link_in_mail())
    check_page(page, "sign-up-confirm")
    page.get_by_role("button", name="Yes, it is mine").click()
    assert page.inner_text("h1") == "Welcome, Ada Lovelace"
    page.locator(".menu > summary").click()
    page.get_by_role("link", name="Your account").click()
    check_page(page, "account")
    page.goto("/log-out/")
    check_page(page, "log-out")
    page.get_by_role("button", name="Log out", exact=True).last.click()
    assert page.get_by_role("link", name="Log in").count() > 0
    assert "You are logged out." in page.inner_text("main")


def test_log_in_that_fails_and_is_throttled_passes_the_check(page, check_page):
    user = make_user()
    page.goto("/log-in/")
    for _ in range(5):
        fill(page, "Log in", login=user.email, password="guess")
    check_page(page, "log-in-wrong")
    fill(page, "Log in", login=user.email, password=PASSWORD)
    assert "Too many failed attempts" in page.inner_text("main")
    check_page(page, "log-in-throttled")
    assert page.evaluate("document.activeElement.className") == "error-summary"


def test_forgotten_password_is_chosen_anew(page, check_page):
    user = make_user()
    page.goto("/log-in/")
    page.get_by_role("link", name="Forgotten your password?").click()
    fill(page, "Mail me the link", email=user.email)
    page.goto(link_in_mail())
    fill(page, "Keep this password", password1="short", password2="other")
    check_page(page, "password-new-errors")
    fill(page, "Keep this password", password1="quite another one 7", password2="quite another one 7")
    assert page.inner_text("h1") == "Your password is changed"


def test_password_and_address_pages_pass_the_check(page, check_page):
    user = make_user(name="Wilhelmina Organizer-Featherstonehaugh")
    log_in(page, user, "/account/password/")
    check_page(page, "account-password")
    fill(page, "Change the password", oldpassword="guess", password1="new one 12345", password2="new one 12345")
    check_page(page, "account-password-errors")
    page.goto("/account/e-mail/")
    check_page(page, "account-address")
    fill(page, "Change the address", email="a-rather-long-new-address@department.university.example")
    check_page(page, "account-confirm")
    fill(page, "Continue", password=PASSWORD)
    assert "is not confirmed yet" in page.inner_text("main")
    check_page(page, "account-address-pending")
    page.goto(link_in_mail())
    page.get_by_role("button", name="Yes, it is mine").click()
    page.goto("/account/")
    assert "a-rather-long-new-address@department.university.example · Change" in page.inner_text(".facts")


def test_way_through_the_second_factor(page, check_page):
    user = make_user()
    log_in(page, user)
    page.get_by_role("link", name="Set it up").click()
    check_page(page, "second-factor-off")
    page.get_by_role("link", name="Set it up").click()
    fill(page, "Continue", password=PASSWORD)
    page.wait_for_load_state("networkidle")
    picture = page.locator("img.plate")
    assert picture.evaluate("(image) => image.complete && image.naturalWidth > 0")
    check_page(page, "second-factor-set-up")
    fill(page, "Switch it on", code=code_for(page.inner_text(".secret")))
    assert page.locator(".codes li").count() == 10
    check_page(page, "second-factor-codes")
    page.goto("/account/second-factor/")
    check_page(page, "second-factor-on")
    page.get_by_role("link", name="Make new ones").click()
    check_page(page, "second-factor-new-codes")
    page.goto("/account/second-factor/app/off/")
    check_page(page, "second-factor-switch-off")
    page.goto("/account/confirm/")
    check_page(page, "account-confirm-with-code-beside")
    page.goto("/account/confirm/code/")
    check_page(page, "account-confirm-by-code")
    page.goto("/account/")
    check_page(page, "account-with-second-factor")
    page.context.clear_cookies()
    cache.clear()  # a code opens the door once, and this half minute's has been used
    log_in(page, user)
    fill(page, "Log in", code="000000")
    check_page(page, "log-in-second-factor")
    secret = Authenticator.objects.get(user=user, type="totp").data["secret"]
    fill(page, "Log in", code=code_for(secret))
    assert page.inner_text("h1") == "Your account"


def test_tokens_are_made_and_revoked(new_page, check_page):
    user = make_organizer()
    vouch_for_address(user)
    page = new_page(user)
    page.goto("/account/tokens/")
    check_page(page, "tokens-none")
    fill(page, "Make the token")
    check_page(page, "tokens-errors")
    fill(page, "Make the token", name="vp on my laptop")
    assert re.fullmatch(r"vpp_[\w-]{40}", page.inner_text(".secret"))
    ended = timezone.now() - timezone.timedelta(days=1)
    create_token(user=user, name="old", scopes=["read", "submit", "organize"], expires_at=ended)
    check_page(page, "tokens-new")
    page.goto("/account/tokens/")
    check_page(page, "tokens")
    page.get_by_role("button", name="Revoke vp on my laptop").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    page.get_by_text("The token “vp on my laptop” is revoked").wait_for()
    assert page.locator("table th[scope=row]").all_inner_texts() == ["old"]


def test_mails_are_chosen(new_page, check_page):
    user = make_user()
    page = new_page(user)
    page.goto("/account/notices/")
    check_page(page, "notices")
    page.get_by_label("the evaluation of a submission fails").uncheck()
    page.get_by_role("button", name="Keep this choice").click()
    page.get_by_text("Your choice is kept.").wait_for()
    assert User.objects.get(pk=user.pk).unwanted_notices == ["failed"]


def test_too_many_attempts_have_a_page(page, check_page, settings):
    settings.ACCOUNT_RATE_LIMITS = {"signup": "1/m/ip"}
    for _ in range(2):
        page.goto("/sign-up/")
        page.get_by_role("button", name="Sign up").click()
    assert page.inner_text("h1") == "Too many attempts"
    check_page(page, "too-many-attempts")
