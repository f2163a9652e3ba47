"""The page of the API in a real browser."""


def test_description_of_the_api_is_readable_and_a_link_to_a_shape_opens_it(page, check_page):
    page.goto("/api/")
    page.locator("#show_submission > summary").click()
    page.locator("#show_submission a", has_text="FullSubmission").click()
    page.wait_for_url("**#shape-FullSubmission")
    page.goto("/api/")
    check_page(page, "api", with_axe=False)
    page.evaluate("() => document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    check_page(page, "api-open")
