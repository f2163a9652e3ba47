"""The page of the API in a real browser."""

import pytest

pytestmark = pytest.mark.django_db(transaction=True)


def test_description_of_the_api_is_readable(new_page, check_page):
    page = new_page()
    page.goto("/api/")
    check_page(page, "api")
    page.evaluate("() => document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    check_page(page, "api-open")


def test_link_to_a_shape_opens_it(new_page):
    page = new_page()
    page.goto("/api/")
    page.locator("#show_submission > summary").click()
    page.locator("#show_submission a", has_text="FullSubmission").click()
    assert page.url.endswith("#shape-FullSubmission")
