"""Maintenance mode as visitors, members and operators meet it."""

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from portal.core import maintenance
from portal.operations.maintenance import begin_maintenance, end_maintenance
from tests.portal.factories import make_user

MESSAGE = "We install a new version and are back at 18:00 UTC."


@pytest.fixture(autouse=True)
def off_afterwards():
    yield
    maintenance._known.maintenance = None


def begin():
    begin_maintenance(message=MESSAGE, now=timezone.now())
    maintenance.look()


def end():
    end_maintenance(now=timezone.now())
    maintenance.look()


def test_page_of_visitors_passes_the_check_and_goes_on_by_itself(page, check_page, monkeypatch):
    begin()
    page.goto("/docs/?q=scores")
    expect(page.locator("main")).to_contain_text(f"{MESSAGE} What you sent before is kept.")
    check_page(page, "maintenance")
    page.get_by_role("link", name="log in").click()
    expect(page.get_by_label("E-mail address")).to_be_visible()
    monkeypatch.setattr("portal.operations.maintenance.AGAIN_S", 1)
    page.goto("/docs/?q=scores")
    expect(page.get_by_role("heading", name="The portal is under maintenance")).to_be_visible()
    end()
    expect(page.locator("h1")).to_have_text("Documentation")
    assert page.url.endswith("/docs/?q=scores")


def test_what_a_member_sends_meanwhile_is_sent_by_the_same_page_afterwards(new_page, check_page):
    member = make_user()
    page = new_page(member)
    page.goto("/account/notifications/")
    check_page(page, "notices")
    for box in page.get_by_role("checkbox").all():
        box.uncheck()
    begin()
    page.get_by_role("button", name="Save this choice").click()
    expect(page.locator("main")).to_contain_text("Your last step was not taken.")
    end()
    page.reload()
    expect(page.locator("h1")).not_to_have_text("The portal is under maintenance")
    member.refresh_from_db()
    assert len(member.unwanted_notifications) > 1
