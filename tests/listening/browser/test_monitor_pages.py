"""The organizer's view of a running study in a real browser: live numbers, no rating, exclusions, export."""

import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from listening.app.models import ExclusionRule, Session
from listening.app.monitor import services
from listening.app.monitor.services import flag_sessions
from listening.app.sessions.block_leases import end_session
from tests.browsing import wait_until
from tests.listening.session_factories import (
    add_gold,
    add_play,
    answer_trials,
    by_place,
    finish,
    make_finished_session,
    make_session,
    make_study,
)
from tests.portal.factories import make_organizer

pytestmark = pytest.mark.django_db(transaction=True)
RENEWED_WITHIN_S = 5


@pytest.fixture
def organizer():
    return make_organizer()


def make_busy_study(organizer):
    """A study in which everything happens that the monitor tells."""
    study = make_study(
        evaluators=12,
        trials=16,
        systems=3,
        organizer=organizer,
        title="How the systems of 2026 sound",
        gold_trials=1,
        screening={"sound": True, "headphones": "huggins"},
    )
    add_gold(study, expected={"verifiability": [9, 10]})
    for item in study.presentations.filter(purpose="scored")[:8]:
        item.is_target = not item.is_target
        item.save()
    for _ in range(3):
        make_finished_session(study)
    lined = make_finished_session(study, by_place(7))
    add_play(lined, "muted")
    add_play(lined, "hidden", position=2, whole=False)
    lined.serves.create(trial=lined.block.trials.first(), slot="a", first_at=timezone.now(), complete_at=timezone.now())
    lined.screening_results.create(kind="huggins", attempt=1, score=2, of=6, is_passed=False)
    lined.screening_results.create(kind="huggins", attempt=2, score=6, of=6, is_passed=True)
    lined.events.create(kind="audio", is_told=True, data={"state": "running"})
    for position, what in ((1, "noise"), (1, "silence"), (2, "cut-off")):
        lined.events.create(kind="clip-remark", data={"position": position, "slot": "a", "what": what})
    answer_trials(make_session(study), trials=7)
    stalled = answer_trials(make_session(study), trials=2)
    Session.objects.filter(pk=stalled.pk).update(last_seen_at=timezone.now() - timedelta(minutes=9))
    end_session(answer_trials(make_session(study), trials=11), "expired", timezone.now())
    screened = make_session(study, step="headphones", trials_started_at=None)
    screened.screening_results.create(kind="huggins", attempt=1, score=1, of=6, is_passed=False)
    end_session(screened, "screened-out", timezone.now())
    end_session(make_session(study, is_simulated=True), "withdrawn", timezone.now())
    flag_sessions(timezone.now())
    return study, lined


def address(name, study, *more):
    return reverse(f"studies:{name}", args=[study.name, *more])


def test_pages_of_a_busy_study_look_right(organizer, new_page, check_page):
    study, lined = make_busy_study(organizer)
    page = new_page(organizer)
    page.goto(address("monitor", study))
    check_page(page, "study-monitor")
    page.goto(address("session", study, lined.pk))
    check_page(page, "study-session")
    page.goto(address("exclusions", study) + "?flag=straight-lining")
    check_page(page, "study-exclusion-effect")
    services.create_rule(study=study, by=organizer, reason="Rated without listening.", flag="straight-lining")
    page.goto(address("exclusions", study))
    page.locator("#log ~ ol summary").first.click()
    check_page(page, "study-exclusions")
    study.participants.update(platform_id="somebody")
    page.goto(address("export", study))
    check_page(page, "study-export")


def test_criterion_25_monitor_follows_within_five_seconds(organizer, new_page, problems):
    study = make_study(evaluators=4, trials=8, organizer=organizer)
    session = make_session(study)
    page = new_page(organizer)
    page.clock.install()
    page.goto(address("monitor", study))
    numbers = page.locator("dl.stats > div")

    def number(label):
        return numbers.filter(has=page.locator(f"dt:text-is('{label}')")).locator(".value").inner_text()

    assert (number("Started"), number("Under way"), number("Finished")) == ("1", "1", "0")
    page.locator(f"#session-{session.pk}").focus()
    finish(answer_trials(session, by_place(7)))
    make_session(study)
    flag_sessions(timezone.now())
    with page.expect_request("**/monitor/live*") as asked:
        page.clock.fast_forward(1000 * RENEWED_WITHIN_S)
    # What the portal needs to answer depends on the machine; how often the page asks does not.
    asked_every_s = float(re.search(r"every (\d+)s", page.locator("#live").get_attribute("hx-trigger"))[1])
    assert asked_every_s < RENEWED_WITHIN_S
    assert asked.value.response().ok
    started_running_finished = lambda: tuple(map(number, ("Started", "Under way", "Finished")))  # noqa: E731
    wait_until(lambda: started_running_finished() == ("2", "1", "1"), "the finished session and the next one")
    live = page.locator("#live")
    expect(live).to_contain_text("1 of 4 blocks are finished")
    for told in (r"Straight-lining\s+1", r"original\s+4 of 16"):
        wait_until(lambda wanted=told: re.search(wanted, live.inner_text()), told)
    # Who walks through the page with the keyboard stays where they are.
    assert page.evaluate("document.activeElement.id") == f"session-{session.pk}"
    assert problems[page] == []


def test_criterion_25_no_page_or_reply_tells_a_rating_while_the_study_recruits(organizer, new_page):
    """With ratings that a page could have no other reason to show."""
    study = make_study(evaluators=3, trials=8, organizer=organizer)
    ratings = [7001, 7013, 7027, 7039, 7057, 7069, 7079, 7103]
    session = make_finished_session(study, by_place(*ratings))
    flat = make_finished_session(study, by_place(7001))
    flag_sessions(timezone.now())
    page = new_page(organizer)
    pages = [
        address("monitor", study),
        address("live", study),
        address("session", study, session.pk),
        address("session", study, flat.pk),
        address("exclusions", study) + "?flag=straight-lining",
        address("exclusions", study),
        address("export", study),
    ]
    told = ""
    for one in pages:
        page.goto(one)
        told += page.content() + page.request.get(one).text()
    assert "8 of 8 ratings of verifiability in a row are the same." in told
    told = re.sub(r'datetime="[^"]*"|csrfmiddlewaretoken" value="[^"]*"', "", told)  # digits by chance
    for rating in ratings:
        assert str(rating) not in told
    # Nor what follows from them: the mean of each task over all or over a system.
    means = {round(sum(ratings) / len(ratings), digits) for digits in (0, 1, 2)}
    for mean in means:
        assert str(mean).removesuffix(".0") not in told


def test_criterion_25_exclusion_is_previewed_made_and_revoked_by_hand(organizer, new_page, problems):
    study, lined = make_busy_study(organizer)
    page = new_page(organizer)
    page.goto(address("monitor", study))
    page.locator("#leave-out-straight-lining").click()
    expect(page.locator("main")).to_contain_text("This would leave out 1 session with 16 usable answers")
    assert not ExclusionRule.objects.exists()
    page.get_by_label("Reason").fill("The same rating throughout.")
    page.get_by_role("button", name="Make the rule").click()
    page.get_by_text("The rule is in force").wait_for()
    expect(page.locator("#log ~ ol")).to_contain_text("64 → 48")
    page.goto(address("session", study, lined.pk))
    expect(page.locator("main")).to_contain_text("The same rating throughout.")
    page.goto(address("exclusions", study))
    page.get_by_role("button", name="Revoke").click()
    page.locator("dialog").get_by_role("button", name="Revoke").click()
    page.get_by_text("The rule is revoked").wait_for()
    expect(page.locator("#log ~ ol")).to_contain_text("48 → 64")
    assert ExclusionRule.objects.get().revoked_by == organizer
    assert problems[page] == []
