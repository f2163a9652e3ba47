"""After every refused form the window shows the error, and the keyboard is there, wherever the address points."""

from playwright.sync_api import expect

from tests.browsing import wait_until
from tests.portal.factories import make_corpus, make_operator, make_organizer

REFUSED = ".error-summary, .messages .error"
PLACE = """() => {
  const refused = document.querySelector("%s");
  const { top, bottom } = refused.getBoundingClientRect();
  return [top >= 0 && top < innerHeight && bottom > 0, document.activeElement === refused, location.hash];
}"""


def expect_refused(page, words):
    """The window shows the error with these words when everything is loaded, and it has the focus."""
    expect(page.locator(REFUSED).first).to_contain_text(words)
    page.wait_for_load_state("load")
    page.evaluate("new Promise((done) => setTimeout(done, 300))")  # what the browser still scrolls to by itself
    wait_until(lambda: page.evaluate(PLACE % REFUSED) == [True, True, ""], "the error in the window, with the focus")


def send(page, button):
    with page.expect_navigation():
        page.get_by_role("button", name=button, exact=True).click()


def test_challenge_without_a_title_shows_its_error_after_its_rules(new_page):
    make_corpus(speakers=4)
    page = new_page(make_organizer())
    page.set_viewport_size({"width": 700, "height": 300})
    page.goto("/editions/new/?corpus=tones&protocol=proposed")
    send(page, "Show the rules")
    assert page.url.endswith("#rules")
    assert page.evaluate("scrollY") > 1000
    send(page, "Create the challenge")
    expect_refused(page, "Give the edition a title.")


def test_refusal_that_the_next_page_tells_is_shown_whatever_the_address_points_to(new_page):
    operator = make_operator()
    page = new_page(operator)
    page.set_viewport_size({"width": 700, "height": 300})
    page.goto(f"/people/{operator.pk}/#account")
    page.get_by_label("Operator: runs the portal").uncheck()
    send(page, "Save the roles")
    expect_refused(page, "is the only operator who can log in")


def test_who_types_before_everything_is_loaded_keeps_the_keyboard(new_page):
    def add_image(route):
        answer = route.fetch()
        route.fulfill(response=answer, body=answer.text().replace("</main>", '<img src="/slow.png" alt=""></main>'))

    page, held = new_page(), []
    page.route("**/sign-up/", add_image)
    page.route("**/slow.png", lambda route: held.append(route))
    page.goto("/sign-up/", wait_until="commit")
    page.get_by_role("button", name="Sign up", exact=True).click(no_wait_after=True)
    expect(page.locator(REFUSED).first).to_be_focused()
    name = page.get_by_label("Name", exact=True)
    name.click()
    page.keyboard.type("Ni")
    assert page.evaluate("document.readyState") == "interactive"
    for one in held:
        one.abort()
    page.wait_for_load_state("load")
    page.evaluate("new Promise((done) => setTimeout(done, 300))")
    page.keyboard.type("a")
    expect(name).to_have_value("Nia")
