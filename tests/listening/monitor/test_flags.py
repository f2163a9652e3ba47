"""What is flagged about a session, by pure rules and by the look at stored answers."""

from datetime import timedelta

import pytest
from django.template.loader import render_to_string
from django.utils import timezone

from listening.app.models import Answer, Flag, Session
from listening.app.monitor import rules, services
from listening.app.monitor.rules import Record, Timing, findings
from listening.app.monitor.selectors import measure_coverage
from listening.app.monitor.services import flag_sessions
from portal.jobs.scheduler import _entries
from tests.listening.factories import ask
from tests.listening.session_factories import (
    add_gold,
    add_play,
    answer_trials,
    by_place,
    finish,
    make_finished_session,
    make_session,
    make_study,
    varied,
)

TASK = "naturalness"


def kinds(record):
    return list(findings(record))


def of_ratings(ratings, planned=52, points=10):
    return Record(points={TASK: points}, planned=planned, ratings={TASK: ratings})


def spread(count):
    return [varied(place, TASK) for place in range(count)]


# Rules ---------------------------------------------------------------------------------------------


def test_half_the_session_with_one_rating_is_straight_lining_and_one_less_is_not():
    assert kinds(of_ratings([*spread(10), *[7] * 26, *spread(10)])) == ["straight-lining"]
    assert kinds(of_ratings([*spread(10), *[7] * 25, 6, 5, *spread(10)])) == []


def test_nobody_is_flagged_for_the_first_seven_ratings():
    assert kinds(of_ratings([7] * 7, planned=10)) == []
    assert kinds(of_ratings([7] * 8, planned=10)) == ["straight-lining"]


def test_ratings_that_hardly_vary_are_told_from_equal_ones():
    assert kinds(of_ratings([5, 5, 6, 5] * 13)) == ["low-variance", "alternating"]
    nearly = of_ratings([5, 5, 6, 5, 5, 5, 6, 6, 5, 6, 5, 5, 6] * 4)
    [(kind, data)] = findings(nearly).items()
    assert (kind, data["limit"], data["of"]) == ("low-variance", 0.506, 52)
    assert kinds(of_ratings([5] * 52)) == ["straight-lining"]


def test_variance_limit_follows_the_scale():
    assert rules.variance_limit(5) == pytest.approx(0.1)
    ratings = [2, 3, 3, 2, 3, 2, 2, 2, 3, 3, 3, 2, 3] * 4  # variance 0.25
    assert kinds(of_ratings(ratings, points=10)) == ["low-variance"]
    assert kinds(of_ratings(ratings, points=5)) == []


@pytest.mark.parametrize("pattern", [(1, 9), (2, 5, 8), (1, 4, 7, 10)])
def test_repeated_patterns_of_two_to_four_ratings_are_alternating(pattern):
    whole = [pattern[place % len(pattern)] for place in range(52)]
    assert kinds(of_ratings(whole)) == ["alternating"]
    assert kinds(of_ratings([*whole[:25], 6, 3, 6, 2])) == []


def test_time_under_sixty_percent_of_the_speech_is_too_fast():
    fast, slow = [Timing(4.7, 8.0)] * 26, [Timing(9.0, 8.0)] * 26
    assert kinds(Record({TASK: 10}, 52, timings=fast)) == ["too-fast"]
    assert kinds(Record({TASK: 10}, 52, timings=fast[:25])) == []  # not half of the session yet
    assert kinds(Record({TASK: 10}, 52, timings=[*fast[:25], *slow])) == []
    assert kinds(Record({TASK: 10}, 52, timings=[Timing(4.8, 8.0)] * 52)) == []  # 60 % itself is not under it


def test_missed_controls_failed_headphones_and_tampering_are_flagged():
    assert kinds(Record({TASK: 10}, 52, gold=[True, False])) == ["gold-missed"]
    assert kinds(Record({TASK: 10}, 52, checks={"huggins": True, "woods": False})) == ["headphones"]
    assert kinds(Record({TASK: 10}, 52, notes=[frozenset({"rate"})])) == ["playback"]
    assert kinds(Record({TASK: 10}, 52, notes=[frozenset({"hidden"})] * 2)) == []
    assert kinds(Record({TASK: 10}, 52, notes=[frozenset({"hidden"})] * 3)) == ["playback"]


def test_most_trials_without_a_playback_are_not_heard_and_half_of_them_are_no_sign():
    assert kinds(Record({TASK: 10}, 10, unheard=[True] * 6 + [False] * 4)) == ["not-heard"]
    assert kinds(Record({TASK: 10}, 10, unheard=[True] * 5 + [False] * 5)) == []


def test_every_finding_reads_as_a_sentence_that_tells_no_rating():
    record = Record(
        {"verifiability": 10, TASK: 10},
        8,
        {"verifiability": [7] * 52, TASK: [5, 6] * 26},
        [Timing(1, 8)] * 52,
        [False],
        {"woods": False},
        [frozenset({"muted"})],
        [True],
    )
    flags = [Flag(kind=kind, data=data | {"holds": True}) for kind, data in findings(record).items()]
    told = {
        flag.kind: render_to_string("listening/monitor/_flag_reason.html", {"flag": flag}).strip() for flag in flags
    }
    assert told["straight-lining"] == "52 of 52 ratings of verifiability in a row are the same."
    assert set(told) == set(rules.RULES)


# Stored sessions -----------------------------------------------------------------------------------


def make_running():
    return make_study(evaluators=8, trials=16)


@pytest.fixture
def study(once):
    return once(make_running)


def stored(session):
    return dict(session.flags.values_list("kind", "data"))


def look():
    return flag_sessions(timezone.now())


def test_criterion_15_each_pattern_stands_within_a_minute_and_nothing_is_deleted(study):
    add_gold(study, expected={"verifiability": [9, 10]})
    sessions = {
        "straight-lining": answer_trials(make_session(study), by_place(7)),
        "low-variance": answer_trials(make_session(study), by_place(5, 5, 6, 5, 6, 6, 5)),
        "alternating": answer_trials(make_session(study), by_place(2, 9)),
        "too-fast": answer_trials(make_session(study), spent_ms=300),
        "gold-missed": answer_trials(make_session(study), lambda place, task: min(8, varied(place, task))),
        "playback": answer_trials(make_session(study), trials=12),
        "headphones": make_session(study),
    }
    add_play(sessions["playback"], "rate")
    sessions["headphones"].screening_results.create(kind="huggins", attempt=1, score=2, of=6, is_passed=False)
    answers = Answer.objects.count()
    task = next(entry for entry in _entries if entry.work.__name__ == "flag_answers")
    assert task.every_s <= 30
    task.work()  # what the scheduler does at least every half minute
    assert {kind: kind in stored(session) for kind, session in sessions.items()} == dict.fromkeys(sessions, True)
    assert Answer.objects.count() == answers
    assert set(study.sessions.values_list("state", flat=True)) == {"active"}


def test_criterion_15_session_of_52_identical_ratings_is_flagged_once_however_often_it_is_looked_at(db):
    session = make_finished_session(make_study(evaluators=1, trials=52), by_place(7))
    look()
    look()
    (flag,) = session.flags.filter(kind="straight-lining")
    assert flag.data == {"task": "verifiability", "length": 52, "of": 52, "holds": True}
    assert session.answers.count() == 52 * 3


def test_flag_that_no_longer_holds_stays_and_says_so(study):
    session = answer_trials(make_session(study), by_place(5, 5, 6, 6, 5, 6, 5), trials=9)
    look()
    assert stored(session)["low-variance"]["holds"] is True
    later = session.block.trials.filter(position__gt=9)
    for place, trial in enumerate(later):
        for task in study.asked_keys:
            rating = (1, 10)[place % 2] if place < 3 else varied(place, task)
            session.answers.create(trial=trial, task=task, rating=rating, received_at=timezone.now())
    look()
    assert stored(session)["low-variance"]["holds"] is False
    assert stored(session)["low-variance"]["of"] == 9


def test_only_sessions_with_news_are_looked_at_again(study):
    session = answer_trials(make_session(study))
    assert look() == 1
    old = timezone.now() - timedelta(minutes=10)
    Session.objects.filter(pk=session.pk).update(last_seen_at=old)
    assert look() == 0
    finish(session)
    assert look() == 1


def test_previews_and_withdrawn_sessions_are_not_looked_at(study):
    answer_trials(make_session(study, is_preview=True), by_place(7))
    answer_trials(make_session(study, state="withdrawn"), by_place(7))
    assert look() == 0
    assert not Flag.objects.exists()


def test_practice_says_nothing_about_a_session(study):
    study.presentations.update(purpose="practice")
    session = answer_trials(make_session(study), by_place(7))
    look()
    assert stored(session) == {}


def test_late_answers_are_timed_by_the_browser_alone(study):
    """A queue that drains at once is no sign of haste."""
    honest = answer_trials(make_session(study), apart_s=0.01, spent_ms=9000, is_late=True)
    hasty = answer_trials(make_session(study), apart_s=0.01, spent_ms=9000)
    look()
    assert (sorted(stored(honest)), sorted(stored(hasty))) == ([], ["too-fast"])


def test_sample_b_counts_as_speech_only_where_it_is_heard(study):
    ask(study, ["naturalness"])
    session = answer_trials(make_session(study), spent_ms=500)  # of 0.6 s, not of the 1.2 s of both
    look()
    assert stored(session) == {}


def test_headphones_are_judged_when_the_check_is_over_and_by_the_best_attempt(study):
    checking, passed = make_session(study, step="headphones"), make_session(study)
    for session in (checking, passed):
        session.screening_results.create(kind="huggins", attempt=1, score=2, of=6, is_passed=False)
    passed.screening_results.create(kind="huggins", attempt=2, score=6, of=6, is_passed=True)
    look()
    assert not Flag.objects.exists()


def test_looking_costs_the_same_queries_for_one_and_for_three_sessions(study, django_assert_num_queries):
    answer_trials(make_session(study), by_place(7))
    with django_assert_num_queries(15):
        look()
    for _ in range(3):
        answer_trials(make_session(study), by_place(7))
    Session.objects.update(flagged_at=None)
    with django_assert_num_queries(15):
        look()


def test_nothing_is_flagged_about_who_withdraws_while_it_is_looked_at(study, monkeypatch):
    session = answer_trials(make_session(study), by_place(7))
    judged = services.findings

    def judge_and_be_left(record):
        found = judged(record)
        assert found
        Session.objects.filter(pk=session.pk).update(state="withdrawn")
        return found

    monkeypatch.setattr(services, "findings", judge_and_be_left)
    look()
    assert session.flags.count() == 0


# Sessions that cannot have listened ------------------------------------------------------------------


def end(session):
    finish(session)
    look()


def usable(study):
    return measure_coverage(study).total.usable


def test_program_that_reports_no_playback_has_no_usable_answer_and_its_block_is_offered_again(study):
    end(answer_trials(make_session(study), plays=False))
    session = study.sessions.get()
    assert stored(session)["not-heard"] == {"unheard": 16, "of": 16, "holds": True}
    assert (usable(study), study.blocks.exclude(holder=None).count()) == (0, 0)
    (rule,) = study.exclusion_rules.all()
    assert (rule.flag, rule.created_by, rule.reason.partition(":")[0]) == ("not-heard", None, "Made by the portal")


def test_next_program_falls_under_the_same_rule(study):
    for _ in range(2):
        end(answer_trials(make_session(study), plays=False))
    assert (study.exclusion_rules.count(), usable(study)) == (1, 0)


def test_revoked_rule_counts_its_sessions_and_is_not_made_again(study):
    end(answer_trials(make_session(study), plays=False))
    services.revoke_rule(rule=study.exclusion_rules.get(), by=None, now=timezone.now())
    end(answer_trials(make_session(study), plays=False))
    assert (study.exclusion_rules.count(), usable(study)) == (1, 32)


@pytest.mark.parametrize("play", [{"is_whole": False}, {"heard_ms": 100}, {"slot": "b"}])
def test_playbacks_that_say_that_nothing_was_heard_to_its_end_are_none(study, play):
    session = answer_trials(make_session(study))
    session.plays.filter(slot="a").update(**play)
    end(session)
    assert (stored(session)["not-heard"]["unheard"], usable(study)) == (16, 0)


def test_honest_session_of_which_half_of_the_reports_were_lost_counts(study):
    session = answer_trials(make_session(study))
    session.plays.filter(trial__position__lte=8).delete()
    end(session)
    assert (stored(session), usable(study)) == ({}, 16)


def test_sample_b_is_asked_for_only_where_voices_are_compared(study):
    ask(study, ["naturalness"])
    session = answer_trials(make_session(study))
    session.plays.filter(slot="b").delete()
    end(session)
    assert stored(session) == {}


def test_session_under_way_is_flagged_and_stays_where_it_is(study):
    session = answer_trials(make_session(study), plays=False, trials=4)
    look()
    assert (list(stored(session)), study.exclusion_rules.count()) == (["not-heard"], 0)
