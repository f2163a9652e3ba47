"""Every end says what it means for the pay and what to do now, in every language and wherever somebody came from."""

import re
from itertools import product

import pytest
from django.test import Client
from django.utils import timezone

from listening.app.models import Session
from listening.app.sessions.block_leases import end_session
from listening.app.withdrawal.services import withdraw
from tests.listening.factories import make_session, make_study
from tests.listening.visits import PERSON, PLAIN, Visit, link_of, prolific_id, text_of

pytestmark = pytest.mark.django_db
ENDS = [state for state in Session.State.values if state != "active"]
ALL_CODES = {"complete": "ALLDONE1", "screened-out": "NOTTHIS2", "failed-attention": "NOGOLD3", "technical": "OURS4"}
# What each end says of the pay: with a code, and without one.
PAY = {
    "finished": ("the code is for the full pay", "the code is for the full pay"),
    "failed-attention": ("the code is for the full pay", "decide on the pay by it"),
    "technical": ("that a technical error ended the test", "The organizers of the study decide on the pay"),
    "expired": ("that the test is not complete", "so there is nothing to be paid"),
    "screened-out": ("Prolific shows what is paid for that", "Only the test itself is paid"),
    "withdrawn": ("that you were given stays valid", "is not paid, because its answers are deleted"),
}
TO_DO = {
    "own": ("Give this code to the person who asked you", "There is nothing more to do."),
    "prolific": ("Go back to Prolific with the button", "return your submission on Prolific"),
    "mturk": (
        "Submit the task with the button",
        "return the task on Mechanical Turk",
        "If you have not submitted the task",
    ),
}


def make_paid(platform="own", codes=ALL_CODES, **fields):
    settings = {"codes": codes} if platform == "prolific" else {}
    return make_study(platform=platform, platform_settings=settings, evaluators=12, trials=2, **fields)


def make_ended(state, platform="own", *, answers=1, reason="", language="en", study=None, **fields):
    study = study or make_paid(platform, **fields)
    data = {"session": "A1", "submit_to": "https://www.mturk.com/mturk/externalSubmit"} if platform == "mturk" else {}
    session = make_session(study)
    Session.objects.filter(pk=session.pk).update(platform_data=data, language=language)
    session.refresh_from_db()
    for trial in session.block.trials.all()[:answers]:
        session.answers.create(trial=trial, task="naturalness", rating=5, received_at=timezone.now())
    if state == "withdrawn":
        withdraw(session, timezone.now())
    else:
        end_session(session, state, timezone.now(), **({"reason": reason} if reason else {}))
    return session


def page_of(session):
    return text_of(Client().get(session.get_absolute_url()))


@pytest.mark.parametrize(
    ("platform", "codes"), [*((one, ALL_CODES) for one in TO_DO), ("prolific", {"complete": "ALLDONE1"})]
)
def test_criterion_31_every_end_tells_the_pay_and_what_to_do(platform, codes):
    study = make_paid(platform, codes)
    for state, answers in product(ENDS, (0, 1)):
        told = page_of(make_ended(state, platform, answers=answers, study=study))
        assert sum(words in told for words in dict.fromkeys(PAY[state])) == 1, told
        assert sum(words in told for words in TO_DO[platform]) == 1, told


def test_criterion_31_every_end_is_told_in_french():
    study = make_paid("prolific")
    for state in ENDS:
        english, french = (page_of(make_ended(state, "prolific", language=one, study=study)) for one in ("en", "fr"))
        sentences = [one for one in re.split(r"(?<=[.!?]) |\n", english) if len(one.split()) > 3]
        assert len(sentences) > 1
        assert [one for one in sentences if one.strip() in french] == []


def test_criterion_31_lost_place_shows_its_code_and_a_reference_on_prolific():
    own, prolific = make_ended("expired"), make_ended("expired", "prolific")
    assert own.completion_code in page_of(own)
    told = page_of(prolific)
    assert ("Your reference" in told, prolific.completion_code in told) == (True, True)
    assert "Back to Prolific" not in told


def test_code_of_who_withdraws_afterwards_is_still_shown():
    session = make_ended("finished")
    withdraw(session, timezone.now())
    session.refresh_from_db()
    assert session.completion_code in page_of(session)
    assert "stays valid" in page_of(session)


@pytest.mark.parametrize(
    ("reason", "words"), [("closed", "The study was closed"), ("other-submission", "The test goes on elsewhere")]
)
def test_lost_place_says_why(reason, words):
    assert words in page_of(make_ended("expired", reason=reason))


def test_study_that_pays_nobody_says_so():
    told = page_of(make_ended("finished", pay_per_hour=0))
    assert "Nobody is paid for taking part" in told
    assert "only if somebody asks you to show that you took part" in told
    assert told.index("Nobody is paid") > told.index("only if somebody asks")
    closed = page_of(make_ended("expired", reason="closed", answers=0, pay_per_hour=0))
    assert ("What to do now" in closed, "Your pay" in closed) == (True, False)


@pytest.mark.parametrize("state", ["closed", "paused"])
@pytest.mark.parametrize("step", ["before", "consent", "role-play"])
def test_criterion_31_who_cannot_begin_is_told_about_pay_and_platform(state, step):
    study = make_study(platform="prolific", platform_settings={"codes": ALL_CODES}, screening=PLAIN)
    visit = Visit(study, PERSON)
    if step == "role-play":
        visit.consent()
    study.state = state
    study.save()
    if step == "before":
        other = {"PROLIFIC_PID": prolific_id("pid-2"), "SESSION_ID": prolific_id("other")}
        told = text_of(Client().get(link_of(study), PERSON | other))
    else:
        told = text_of(visit.post(step, agrees="on"))
    assert ("paid" in told, "eturn the task on the platform" in told) == (True, True)
    assert visit.session.block is None
