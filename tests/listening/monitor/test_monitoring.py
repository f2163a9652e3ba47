"""The numbers of a running study: what is counted, where people stop, how each system is covered."""

from datetime import timedelta

import pytest
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from listening.app.models import Session
from listening.app.monitor.selectors import build_monitor, list_lines, measure_coverage
from listening.app.monitor.services import flag_sessions
from listening.app.periodic_tasks import flag_answers
from listening.app.sessions.block_leases import end_session
from listening.app.withdrawal.services import withdraw
from tests.listening.answering import answer_all
from tests.listening.session_factories import (
    add_gold,
    add_play,
    answer_trials,
    by_place,
    make_finished_session,
    make_session,
    make_study,
)

pytestmark = pytest.mark.django_db


def make_running():
    return make_study(evaluators=8, trials=12)


@pytest.fixture
def study(once):
    return once(make_running)


@pytest.fixture
def organizer(study):
    return study.edition.organizers.get()


def end(session, state):
    end_session(session, state, timezone.now())
    return session


def monitor(study):
    now = timezone.now()
    return build_monitor(study, list_lines(study, now), now)


def cells(coverage):
    return {
        row.name: (row.total.planned, row.total.usable, row.total.under_way, row.total.partial) for row in coverage.rows
    }


# Numbers -------------------------------------------------------------------------------------------


def test_sessions_are_counted_by_what_became_of_them(study):
    make_finished_session(study)
    answer_trials(make_session(study), trials=3)
    silent = make_session(study)
    Session.objects.filter(pk=silent.pk).update(last_seen_at=timezone.now() - timedelta(minutes=2))
    for state in ("expired", "withdrawn", "screened-out", "failed-attention", "technical"):
        end(make_session(study), state)
    make_session(study, is_preview=True)
    counts = monitor(study).counts
    assert (counts.starts, counts.active, counts.stalled, counts.finished) == (8, 2, 1, 1)
    assert (counts.expired, counts.withdrawn, counts.screened_out) == (1, 1, 1)
    assert (counts.failed_attention, counts.technical, counts.excluded) == (1, 1, 0)


def test_session_is_stalled_after_two_minutes_without_a_sign_and_not_before(study):
    session = make_session(study)
    now = timezone.now()
    Session.objects.filter(pk=session.pk).update(last_seen_at=now)
    stalled = [list_lines(study, now + timedelta(seconds=s))[0].is_stalled for s in (119, 120)]
    assert stalled == [False, True]


def test_blocks_are_counted_as_finished_leased_overdue_and_free(study):
    make_finished_session(study)
    make_session(study)
    late = make_session(study)
    late.block.lease_expires_at = timezone.now() - timedelta(seconds=1)
    late.block.save()
    blocks = monitor(study).blocks
    assert (blocks.total, blocks.finished, blocks.leased, blocks.overdue, blocks.free) == (8, 1, 1, 1, 5)


@pytest.mark.postgres
def test_coverage_counts_finished_sessions_and_tells_others_beside_them(study):
    code = study.systems.first().code
    planned = {name: cell[0] for name, cell in cells(measure_coverage(study)).items()}
    assert sum(planned.values()) == 8 * 12
    assert planned["original"] == 8 * 6
    make_finished_session(study)
    assert cells(measure_coverage(study))["original"] == (48, 6, 0, 0)
    answer_trials(make_session(study), trials=6)
    end(answer_trials(make_session(study)), "expired")
    found = cells(measure_coverage(study))
    assert found["original"] == (48, 6, 3, 6)
    assert found[code][1] == 3


def test_coverage_has_a_column_for_each_class(study):
    originals = list(study.presentations.filter(condition__code=""))
    for place, item in enumerate(originals):
        item.is_target = place < 2
        item.save()
    make_finished_session(study)
    row = measure_coverage(study).rows[0]
    assert (row.same.planned, row.same.usable) == (16, 2)
    assert (row.different.planned, row.different.usable) == (32, 4)


def test_coverage_leaves_out_controls_half_answered_trials_and_previews(study):
    add_gold(study, expected={})
    finished = make_finished_session(study)
    assert measure_coverage(study).total.usable == 12
    finished.answers.filter(task=study.asked_keys[-1], trial__position=1).delete()
    answer_trials(make_session(study, is_preview=True, state="finished"))
    assert measure_coverage(study).total.usable == 11
    assert (measure_coverage(study).heard, measure_coverage(study).items) == (11, 12)


def test_board_covers_the_system_of_each_of_its_samples():
    study = make_study(evaluators=2, trials=4, tasks=["linkability"])
    make_finished_session(study)
    found = cells(measure_coverage(study))
    assert sum(cell[0] for cell in found.values()) == 2 * 4 * 2  # boards of two samples here
    assert sum(cell[1] for cell in found.values()) == 4 * 2
    assert found["original"][:2] == (12, 6)


def test_stages_tell_how_many_came_are_there_and_stopped(study):
    end(make_session(study, step="consent", block=None, trials_started_at=None), "technical")
    end(make_session(study, step="headphones", trials_started_at=None), "screened-out")
    make_session(study, step="sound", trials_started_at=None)
    withdraw(answer_trials(make_session(study), trials=5), timezone.now())
    answer_trials(make_session(study), trials=2)
    make_finished_session(study)
    told = {stage["name"]: (stage["reached"], stage["here"], stage["left"]) for stage in monitor(study).stages}
    assert told == {
        "Consent": (6, 0, 1),
        "Sound test": (5, 1, 0),
        "Listening checks": (4, 0, 1),
        "Instructions": (3, 0, 0),
        "Trials 1–2": (3, 0, 0),
        "Trials 3–4": (3, 1, 0),
        "Trials 5–6": (2, 0, 1),
        "Trials 7–8": (1, 0, 0),
        "Trials 9–10": (1, 0, 0),
        "Trials 11–12": (1, 0, 0),
    }


def test_who_withdraws_after_the_end_stopped_nowhere(study):
    withdraw(make_finished_session(study), timezone.now())
    stages = monitor(study).stages
    assert {(stage["reached"], stage["left"]) for stage in stages} == {(1, 0)}


@pytest.mark.postgres
def test_times_are_medians_of_finished_sessions(study):
    now = timezone.now()
    for minutes in (10, 12, 40):
        session = make_finished_session(study)
        begun = {
            "started_at": now - timedelta(minutes=minutes + 3),
            "trials_started_at": now - timedelta(minutes=minutes),
        }
        Session.objects.filter(pk=session.pk).update(ended_at=now, **begun)
    answer_trials(make_session(study))
    times = monitor(study).times
    assert (times.finished, times.session_s, times.trials_s, times.trial_s) == (3, 900, 720, 60)


def test_flags_are_counted_by_session_while_they_hold(study):
    for _ in range(2):
        answer_trials(make_session(study), by_place(7))
    flag_sessions(timezone.now())
    flag = study.sessions.first().flags.get()
    flag.data |= {"holds": False}
    flag.save()
    assert {one["kind"]: one["sessions"] for one in monitor(study).flags if one["sessions"]} == {"straight-lining": 1}


# Pages ---------------------------------------------------------------------------------------------


def address(name, study, *more):
    return reverse(f"studies:{name}", args=[study.name, *more])


@pytest.mark.postgres
def test_live_part_costs_the_same_queries_for_one_and_three_sessions(
    study, organizer, client, django_assert_num_queries
):
    for _ in range(3):
        answer_trials(make_session(study), by_place(7))
    flag_sessions(timezone.now())
    client.force_login(organizer)
    clock = int(connection.vendor == "postgresql")  # its time is read
    with django_assert_num_queries(clock + 14):
        page = client.get(address("live", study))
    assert page.status_code == 200


def test_session_page_shows_how_somebody_listened(study, organizer, client):
    session = answer_trials(make_session(study, is_simulated=True), by_place(7), trials=8)
    add_play(session, "muted")
    session.serves.create(
        trial=session.block.trials.first(), slot="a", first_at=timezone.now(), complete_at=timezone.now()
    )
    session.screening_results.create(kind="huggins", attempt=1, score=6, of=6, is_passed=True)
    flag_sessions(timezone.now())
    client.force_login(organizer)
    text = client.get(address("session", study, session.pk)).content.decode()
    for told in ("8 of 8 ratings of verifiability in a row are the same.", "muted", "simulated", "6 of 6", "9.0 s"):
        assert told in text


def test_criterion_15_session_straight_lined_over_http_stands_flagged_on_the_monitor(study, organizer, client):
    session = make_session(study)
    assert answer_all(client, session, rating=7)["next"] is None
    flag_answers()
    client.force_login(organizer)
    text = client.get(address("live", study)).content.decode()
    assert "1 finished, 0 under way" in text
    assert f'href="{address("exclusions", study)}?flag=straight-lining"' in text
    assert list_lines(study, timezone.now())[0].step == "end"
    assert (session.answers.count(), Session.objects.get(pk=session.pk).state) == (36, "finished")


def test_monitor_lists_sessions_by_what_is_asked_for(study, organizer, client):
    finished, active = make_finished_session(study, by_place(7)), make_session(study)
    flag_sessions(timezone.now())
    client.force_login(organizer)

    def shown(what):
        text = client.get(address("monitor", study), {"show": what}).content.decode()
        return [one.pk for one in (finished, active) if f'id="session-{one.pk}"' in text]

    assert shown("") == shown("nonsense") == [finished.pk, active.pk]
    assert (shown("finished"), shown("active"), shown("flagged")) == ([finished.pk], [active.pk], [finished.pk])
    assert (shown("stalled"), shown("excluded"), shown("left")) == ([], [], [])


def test_session_of_another_study_is_not_found(study, organizer, client):
    other = make_session(make_study(evaluators=1, trials=2))
    client.force_login(organizer)
    assert client.get(address("session", study, other.pk)).status_code == 404
    assert client.get(address("exclusions", study), {"session": other.pk}).status_code == 404
    assert client.get(address("exclusions", study), {"session": "9" * 30}).status_code == 404
    assert client.get(address("exclusions", study), {"flag": "nonsense"}).status_code == 404
