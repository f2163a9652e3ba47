"""The documentation in a browser."""

from playwright.sync_api import expect

from tests.browsing import too_long


def test_pages_of_the_documentation_pass_the_check_and_are_not_long(page, check_page):
    for name in ("", "methods/", "operator/"):
        page.goto(f"/docs/{name}")
        check_page(page, f"docs-{name.strip('/')}")
        assert too_long(page) == {}, name


def test_sections_of_a_long_page_open_by_a_click_by_their_address_and_in_print(page):
    page.goto("/")
    page.get_by_role("contentinfo").get_by_role("link", name="For teams").click()
    page.get_by_role("heading", name="What to pack").click()
    expect(page.locator("#what-to-pack")).to_be_visible()
    page.goto("/docs/")
    page.goto("/docs/organizer/#who-evaluates")  # a part of a section
    expect(page.get_by_role("heading", name="Who evaluates")).to_be_in_viewport()
    expect(page.locator("#import-a-corpus")).to_be_hidden()
    page.locator(".manual > .fold").evaluate_all("folds => folds.forEach((fold) => (fold.open = true))")
    expect(page.get_by_role("link", name="Open all")).to_be_hidden()  # nothing is left to open
    page.locator(".manual > .fold").last.evaluate("(fold) => (fold.open = false)")
    page.get_by_role("link", name="Open all").click()
    expect(page.locator("#import-a-corpus")).to_be_visible()
    page.get_by_role("link", name="Close all").click()
    expect(page.locator("#import-a-corpus")).to_be_hidden()
    page.emulate_media(media="print")
    assert page.locator(".manual > .fold > div").evaluate_all("parts => parts.every((part) => part.checkVisibility())")


def test_blocks_of_code_are_copied_and_tables_fit_on_phones(page):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.set_viewport_size({"width": 360, "height": 800})
    page.goto("/docs/teams/?open=all")
    block = page.locator(".listing", has_text="vp login")
    block.get_by_role("button", name="Copy").click()
    expect(block.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == block.locator("code").text_content()
    assert "vp status\n" in copied
    expect(page.locator("#announcer")).to_have_text("Copied")
    wide = "boxes => boxes.filter((box) => box.scrollWidth > box.clientWidth).length"
    for name in ("settings", "teams", "methods"):
        page.goto(f"/docs/{name}/?open=all")
        assert page.locator(".manual .table-scroll, .manual .wraps").evaluate_all(wide) == 0
