"""The manual in a browser."""

from playwright.sync_api import expect


def test_pages_of_the_manual_pass_the_check(page, check_page):
    for name in ("", "anonymizer-methods/", "operator/"):
        page.goto(f"/docs/{name}")
        check_page(page, f"docs-{name.strip('/')}")


def test_search_of_the_manual_leads_to_a_section(page):
    page.goto("/docs/")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("combobox").fill("what to pack")
    page.get_by_role("option").filter(has_text="What to pack").first.click()
    expect(page.get_by_role("heading", name="What to pack")).to_be_in_viewport()
