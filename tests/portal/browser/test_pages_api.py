"""The page of the API in a real browser."""

from playwright.sync_api import expect

from tests.browsing import too_long


def test_description_of_the_api_is_readable_and_links_open_what_they_lead_to(page, check_page):
    page.goto("/api/#show_submission")
    link = page.locator("#show_submission a", has_text="FullSubmission")
    expect(page.locator("#shape-FullSubmission")).to_be_hidden()
    link.click()
    page.wait_for_url("**#shape-FullSubmission")
    expect(page.locator("#shape-FullSubmission")).to_have_attribute("open", "")
    page.goto("/docs/")
    page.goto("/api/")
    check_page(page, "api", with_axe=False)
    assert too_long(page) == {}
    page.evaluate("() => document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    check_page(page, "api-open")
