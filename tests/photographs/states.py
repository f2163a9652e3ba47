"""States of pages that need a click or a form: menus, forms sent empty, second steps, an evaluator's way.

Only forms are sent that take nothing while the field that is named beside them is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from django.urls import reverse
from playwright.sync_api import Page

from listening.app.models import Study
from tests.listening.browser.evaluators import Evaluator
from tests.listening.browser.test_steps import continue_
from tests.photographs.finding import EVALUATOR, VISITOR, Found

# By pattern a field without which the form is not taken.
NEEDED = {
    "account_login": "login",
    "account_signup": "email",
    "account_reset_password": "email",
    "account_change_password": "oldpassword",
    "account_reauthenticate": "password",
    "account_email": "email",
    "accounts:profile": "name",
    "accounts:tokens": "name",
    "people:invite": "email",
    "corpora:import": "name",
    "editions:edit": "title",
    "editions:copy": "title",
    "editions:register": "name",
    "teams:edit": "name",
    "studies:new": "title",
    "studies:edit": "title",
    "studies:import": "title",
    "removal:thing": "title",
    "listen:withdraw-by-code": "code",
}
# Addresses that no object tells, by the role that sees them.
FURTHER = (
    (VISITOR, "/no/such/page/"),
    (EVALUATOR, "/listen/no-such-session/"),
    (VISITOR, "/docs/?q=EER"),
    (VISITOR, "/docs/?q=nothingofthekind"),
)
EMPTY = """(field) => {
  const form = document.querySelector(`main form[method=post] [name=${field}]`)?.form;
  if (!form) return false;
  form.noValidate = true;
  for (const one of form.elements) {
    if (one.matches("textarea, input:not([type=hidden], [type=checkbox], [type=radio], [type=submit])")) one.value = "";
  }
  const button = form.querySelector("button:not([type=button], [name])");
  button?.setAttribute("data-pressed", "");
  return button !== null;
}"""
Act = Callable[[Page], Iterator[str]]


def send_empty(page: Page, field: str) -> Iterator[str]:
    """The form with this field, with nothing in it."""
    if page.evaluate(EMPTY, field):
        with page.expect_navigation():
            page.locator("[data-pressed]").click()
        yield "sent empty"


def open_account_menu(page: Page) -> Iterator[str]:
    page.locator("details.menu > summary").click()
    yield "account menu"


def make_challenge(page: Page) -> Iterator[str]:
    """The second page of a new challenge: as it is proposed, with its rules, and without a title."""
    with page.expect_navigation():
        page.get_by_role("button", name="Continue").click()
    yield "second page"
    with page.expect_navigation():
        page.get_by_role("button", name="Show the rules").click()
    yield "with its rules"
    yield from send_empty(page, "title")


def take_part(page: Page, portal: str) -> Iterator[str]:
    """From the welcome page to the first trial, and a pause; the session stays open."""
    person = Evaluator(portal, page.url, seed=1)
    person.page = page
    person.begin()
    while not page.locator("#trials").count():
        if page.locator("[name=agrees]").count():
            yield "consent"
            continue_(page)
            yield "consent not given"
            person.agree()
        elif page.locator("[data-sound]").count():
            yield "sound test"
            person.test_sound()
        elif page.get_by_role("button", name="I have read this").count():
            yield "instructions"
            person.read_role_play()
        else:
            yield "questions"
            continue_(page)
            yield "questions not answered"
            person.tell_about()
    person.expect_trials()
    yield "trial"
    page.locator("details.quiet-help").evaluate_all("(folds) => folds.forEach((one) => { one.open = true; })")
    yield "trial unfolded"
    page.locator("#next").click(force=True)
    yield "trial not answered"
    person.listen()
    person.rate(person.ratings())
    yield "trial answered"
    page.locator("#pause").click()
    yield "pause"


def list_states(pages: list[Found], portal: str) -> list[tuple[str, str, str, Act | None]]:
    """The pattern, address, role and act of each state; an act of a pattern is done at its first page."""
    first: dict[str, Found] = {}
    for page in pages:
        first.setdefault(page.pattern, page)
    found: list[tuple[str, str, str, Act | None]] = [("further", address, role, None) for role, address in FURTHER]
    for pattern, field in NEEDED.items():
        if form := first.get(pattern):
            found.append((pattern, form.address, form.role, partial(send_empty, field=field)))
    with_menu = [page for page in pages if page.pattern == "home" and page.role != VISITOR]
    found += [("home", page.address, page.role, open_account_menu) for page in with_menu]
    if start := first.get("editions:new"):
        found.append((start.pattern, start.address, start.role, make_challenge))
    study = Study.objects.filter(state=Study.State.OPEN, questions__kind="scale").first()
    if study is not None:
        address = reverse("listen:join", args=[study.link_key])
        # Of their own: the browser of somebody who takes part is led back into the session.
        found.append(("listen:join", address, f"{EVALUATOR}-2", partial(take_part, portal=portal)))
    return found
