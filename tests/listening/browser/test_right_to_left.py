"""A whole session in Arabic words of the study, from the link to the end, wide and on a phone."""

import pytest
from playwright.sync_api import expect

from listening.app.models import Session
from listening.app.sessions.block_leases import end_session
from listening.app.studies import services
from listening.app.studies.interface_words import PLACE, list_words
from portal.core.clock import read_clock
from tests.listening.browser.test_steps import choose, continue_, make_full
from tests.listening.browser.trials import listen, open_trials, rate
from tests.listening.factories import make_session, make_study
from tests.listening.visits import link_of

pytestmark = pytest.mark.django_db(transaction=True)
# As long as the English words; what they say does not matter here.
ARABIC = "استمع إلى كل تسجيل حتى نهايته ثم أجب عن الأسئلة في هذه الصفحة ولا تحكم إلا على الصوت وليس على الكلمات "
LEFT = "element => element.getBoundingClientRect().left"


def long_as(english):
    """Arabic words about as long as English ones."""
    return (ARABIC * (1 + len(english) // len(ARABIC)))[: max(5, len(english))].strip()


def in_arabic(study):
    """The study with Arabic texts and words, in which every place for numbers and names is kept."""
    said = {word.key: " ".join([long_as(word.english), *PLACE.findall(word.english)]) for word in list_words("ar")}
    services.change_words(study=study, language="ar", translations=said, by=None)
    for kind in ("consent", "role-play", "instructions", "thanks"):
        services.change_text(study=study, kind=kind, language="ar", text=f"## {ARABIC}\n\n{ARABIC * 3}", by=None)
    return study


def test_whole_session_in_arabic_runs_from_right_to_left(new_page, check_page):
    study = in_arabic(make_full(languages=["ar", "en"]))
    page = new_page(locale="ar")
    page.goto(link_of(study))
    check_page(page, "arabic-welcome")
    with page.expect_navigation():
        page.locator("form .button.wide").click()
    check_page(page, "arabic-consent")
    continue_(page)
    expect(page.locator(".error-summary")).to_be_visible()
    page.locator("input[name=agrees]").check()
    continue_(page)
    continue_(page)
    check_page(page, "arabic-questions")
    for name in ("age", "gender", "hearing"):
        page.locator(f"input[name={name}]").last.check()
    page.locator("select[name=native_language]").select_option("ar")
    continue_(page)
    check_page(page, "arabic-sound")
    row = Session.objects.latest("pk").screening_results.get(is_passed=None)
    choose(page, row.secret["right"])
    continue_(page)
    check_page(page, "arabic-headphones")
    session = Session.objects.latest("pk")
    Session.objects.filter(pk=session.pk).update(step="role-play")
    page.reload()
    check_page(page, "arabic-role-play")
    end_session(session, Session.State.FINISHED, read_clock())
    page.reload()
    check_page(page, "arabic-end")
    code = page.locator("code.code").first
    assert code.get_attribute("dir") == "ltr"


@pytest.mark.parametrize("form", ["rating", "linkability", "transcription"])
def test_trial_in_arabic_is_mirrored(page, check_page, form):
    tasks = {"linkability": ["linkability"], "transcription": ["transcription"]}.get(form)
    study = in_arabic(make_study(trials=2, form=form, languages=["ar"], **({"tasks": tasks} if tasks else {})))
    open_trials(page, make_session(study, language="ar"))
    expect(page.locator("html")).to_have_attribute("dir", "rtl")
    if form == "rating":
        listen(page, "a")
        rate(page, 8, ["verifiability"])
        lowest, highest = (page.locator(f".point input[value='{value}']").first for value in (1, 5))
        assert lowest.evaluate(LEFT) > highest.evaluate(LEFT)
    check_page(page, f"arabic-{form}", with_axe=form == "rating")
