"""The documentation in a browser."""

from playwright.sync_api import expect

from portal.site.manual import PAGES


def test_pages_of_the_documentation_pass_the_check(page, check_page):
    for name in PAGES:
        page.goto(f"/docs/{name}/")
        check_page(page, f"docs-{name}")


def test_footer_leads_to_the_documentation_and_its_contents_to_a_section(page):
    page.goto("/")
    page.get_by_role("contentinfo").get_by_role("link", name="For teams").click()
    page.get_by_role("link", name="What to pack").click()
    page.wait_for_url("**/docs/teams/#what-to-pack")
    expect(page.get_by_role("heading", name="What to pack")).to_be_visible()
