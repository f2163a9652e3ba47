"""Who may submit what and when, at the boundaries of each rule."""

from datetime import UTC, datetime, timedelta

import pytest

from portal.challenges.models import Edition
from portal.core.storage import SPARE_BYTES
from portal.submissions import rules
from portal.teams.models import Team

OPENS = datetime(2022, 3, 1, tzinfo=UTC)
CLOSES = datetime(2022, 7, 31, tzinfo=UTC)
LATE_UNTIL = datetime(2022, 8, 7, tzinfo=UTC)
MOMENT = timedelta(microseconds=1)
EDITION = Edition(
    submissions_open_at=OPENS,
    submissions_close_at=CLOSES,
    late_until=LATE_UNTIL,
    submissions_per_team=3,
    largest_archive_bytes=1000,
)


def refusal(now=OPENS, *, state=Team.State.APPROVED, used=0, by_organizer=False):
    return rules.refusal(EDITION, Team(name="Us", state=state), used=used, by_organizer=by_organizer, now=now)


@pytest.mark.parametrize(
    ("now", "sentence", "late"),
    [
        (OPENS - MOMENT, "Submissions open on 2022-03-01 00:00 UTC.", False),
        (OPENS, "", False),
        (CLOSES - MOMENT, "", False),
        (CLOSES, "", True),
        (LATE_UNTIL - MOMENT, "", True),
        (LATE_UNTIL, "Submissions closed on 2022-08-07 00:00 UTC. Ask the organizer of the edition.", True),
    ],
)
def test_times(now, sentence, late):
    assert (refusal(now), rules.is_late(EDITION, now)) == (sentence, late)
    assert refusal(now, by_organizer=True) == ""


@pytest.mark.parametrize(("used", "is_free"), [(0, True), (2, True), (3, False), (4, False)])
def test_quota_binds_organizers_too(used, is_free):
    assert (refusal(used=used) == "") is is_free
    assert (refusal(used=used, by_organizer=True) == "") is is_free


@pytest.mark.parametrize("state", Team.State.values)
def test_only_approved_teams(state):
    assert (refusal(state=state) == "") is (state == "approved")
    assert (refusal(state=state, by_organizer=True) == "") is (state == "approved")


def test_only_organizers_submit_without_a_team():
    for by_organizer in (True, False):
        found = rules.refusal(EDITION, None, used=0, by_organizer=by_organizer, now=LATE_UNTIL)
        assert (found == "") is by_organizer


@pytest.mark.parametrize(("size", "is_taken"), [(0, False), (1, True), (1000, True), (1001, False)])
def test_size(size, is_taken):
    assert (rules.size_problem(EDITION, size) == "") is is_taken


@pytest.mark.parametrize(("size", "is_taken"), [(40, True), (41, False)])
def test_room(size, is_taken):
    assert (rules.room_problem(size, free=SPARE_BYTES + 100, promised=60) == "") is is_taken


def test_next_label_follows_the_last():
    assert rules.next_label("T11-p", []) == "T11-p1"
    assert rules.next_label("T11-p", ["T11-p9", "T11-p10", "T11-c12", "T1-p20", "B1"]) == "T11-p11"
