"""Archiving and deleting in a browser: what goes, what needs it, and the receipt."""

from playwright.sync_api import expect

from portal.submissions.models import System
from tests.portal.factories import make_corpus, make_organizer, make_system


def test_system_is_archived_and_deleted(new_page, check_page):
    organizer = make_organizer()
    page, system = new_page(organizer), make_system(make_corpus(created_by=organizer))
    page.goto(system.get_absolute_url())
    page.get_by_role("link", name="Archive or delete").click()
    page.get_by_role("button", name="Archive").click()
    expect(page.get_by_text("It has left the lists")).to_be_visible()
    page.get_by_role("textbox", name="Type its name").fill("another")
    page.get_by_role("button", name="Delete").click()
    check_page(page, "deletion-refused")
    page.get_by_role("textbox", name="Type its name").fill(str(system))
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name=f"{system} was deleted")).to_be_visible()
    check_page(page, "deletion-receipt")
    page.get_by_role("link", name="All that was archived or deleted").click()
    check_page(page, "deletion-list")
    assert not System.objects.exists()
