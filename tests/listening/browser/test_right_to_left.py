"""A whole session in Arabic words of the study, from the link to the end, wide and on a phone."""

import pytest
from playwright.sync_api import expect

from listening.app.studies import services
from listening.app.studies.interface_words import PLACE, list_words
from tests.listening.browser.trials import listen, open_trials, rate
from tests.listening.factories import make_session, make_study

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


def test_trial_in_arabic_is_mirrored(page, check_page):
    study = in_arabic(make_study(trials=2, languages=["ar"]))
    open_trials(page, make_session(study, language="ar"))
    expect(page.locator("html")).to_have_attribute("dir", "rtl")
    listen(page, "a")
    rate(page, 8, ["verifiability"])
    lowest, highest = (page.locator(f".point input[value='{value}']").first for value in (1, 5))
    assert lowest.evaluate(LEFT) > highest.evaluate(LEFT)
    check_page(page, "arabic-rating")
