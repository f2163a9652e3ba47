"""Accounts as people meet them: each page at two widths and in both schemes, and the ways through them."""

import re

from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal import auth as totp
from django.core import mail
from django.core.cache import cache
from playwright.sync_api import expect

from tests.browsing import wait_until
from tests.portal.factories import make_user

PASSWORD = "a long password"


def fill(page, button, **fields):
    for name, value in fields.items():
        page.locator(f"[name={name}]").fill(value)
    with page.expect_navigation():
        page.get_by_role("button", name=button, exact=True).click()


def log_in(page, user, wanted="/account/"):
    page.goto(f"/log-in/?next={wanted}")
    fill(page, "Log in", login=user.email, password=PASSWORD)


def link_in_mail(address):
    """The link in the newest mail to this address."""
    link = re.compile(r"http://\S+/(?:sign-up/confirm|password)/\S+")

    def find():
        found = [link.search(one.body) for one in mail.outbox if address in one.to]
        return found[-1] if found else None

    return wait_until(find, f"a mail to {address}")[0]


def code_for(secret):
    return totp.format_hotp_value(totp.hotp_value(secret, next(totp.yield_hotp_counters_from_time())))


DOOR = ("/log-in/closed/", "/sign-up/confirm/nonsense/", "/password/", "/password/mailed/")  # others are on the way


def test_pages_of_the_door_pass_the_check(page, check_page):
    for address in DOOR:
        page.goto(address)
        check_page(page, "door-" + re.sub(r"\W+", "-", address).strip("-"))


def test_way_from_the_sign_up_to_the_log_out(page, check_page):
    page.goto("/sign-up/")
    fill(page, "Sign up", name="", email="ada", password1="password")
    expect(page.locator(".error-summary li")).to_have_count(3)
    check_page(page, "sign-up-errors")
    fill(page, "Sign up", name="Ada Lovelace", email="ada@test.example", password1=PASSWORD)
    expect(page).to_have_title(re.compile("^Confirm your address"))
    check_page(page, "sign-up-mailed")
    page.goto(link_in_mail("ada@test.example"))
    check_page(page, "sign-up-confirm")
    page.get_by_role("button", name="Yes, it is mine").click()
    expect(page.locator("h1")).to_have_text("Welcome, Ada Lovelace")
    page.locator(".menu > summary").click()
    page.get_by_role("link", name="Your account").click()
    check_page(page, "account")
    page.goto("/log-out/")
    page.get_by_role("button", name="Log out", exact=True).last.click()
    expect(page.locator("main")).to_contain_text("You are logged out.")
    expect(page.get_by_role("link", name="Log in").first).to_be_attached()


def test_way_through_the_second_factor(page, check_page, monkeypatch):
    half_minute = next(totp.yield_hotp_counters_from_time())  # no code grows old on its way to the portal
    monkeypatch.setattr(totp, "yield_hotp_counters_from_time", lambda: iter([half_minute]))
    user = make_user()
    log_in(page, user)
    page.get_by_role("link", name="Set it up").click()
    page.get_by_role("link", name="Set it up").click()
    fill(page, "Continue", password=PASSWORD)
    picture = page.locator("img.plate")
    wait_until(lambda: picture.evaluate("(image) => image.complete && image.naturalWidth > 0"), "the picture")
    check_page(page, "second-factor-set-up")
    fill(page, "Switch it on", code=code_for(page.inner_text(".copyable")))
    expect(page.locator(".codes li")).to_have_count(10)
    check_page(page, "second-factor-codes")
    page.goto("/account/second-factor/")
    check_page(page, "second-factor-on")
    page.goto("/account/second-factor/app/off/")
    check_page(page, "second-factor-switch-off")
    page.goto("/account/confirm/code/")
    check_page(page, "account-confirm-by-code")
    page.context.clear_cookies()
    cache.clear()  # a code opens the door once, and this half minute's has been used
    log_in(page, user)
    fill(page, "Log in", code="000000")
    check_page(page, "log-in-second-factor")
    secret = Authenticator.objects.get(user=user, type="totp").data["secret"]
    fill(page, "Log in", code=code_for(secret))
    expect(page.locator("h1")).to_have_text("Your account")
