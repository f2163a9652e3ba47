"""The documentation in a browser."""

import pytest

from portal.results.manual import PAGES


@pytest.mark.parametrize("name", PAGES)
def test_page_of_the_documentation_passes_the_check(page, check_page, name):
    page.goto(f"/docs/{name}/")
    check_page(page, f"docs-{name}")


def test_footer_leads_to_the_documentation_and_its_contents_to_a_section(page):
    page.goto("/")
    page.get_by_role("link", name="For teams").click()
    page.get_by_role("link", name="What to pack").click()
    assert page.url.endswith("/docs/teams/#what-to-pack")
    assert page.get_by_role("heading", name="What to pack").is_visible()
