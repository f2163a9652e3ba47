"""Flags that an analysis finds: written, kept up, made into reversible exclusions, and shown as sentences."""

import numpy as np
import pytest
from django.template.loader import render_to_string
from django.utils import timezone

from listening.analysis.tables import DICTIONARY, Results, make_table
from listening.app.models import Answer, Flag
from listening.app.monitor.services import apply_standing_rules, flag_sessions, preview_effect, revoke_rule
from listening.app.results.inputs import listener_key, session_key
from listening.app.results.selectors import parsed_results
from listening.app.results.services import FLAG_OF_RULE, screen_out, start_analysis, write_flags
from portal.jobs.services import NotPossible
from tests.listening.factories import make_session
from tests.listening.results.answered import CHOSEN, analysed, make_answered

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quick_analyses")]


def results_of(study, *rows):
    """Results in which a rule looked at sessions: rule, session, whether it was caught."""
    rows = [
        {
            "rule": rule,
            "listener": listener_key(study, session.participant.person_key),
            "session": session_key(study, session.pk),
            "value": 0.1,
            "limit": 0.3,
            "is_caught": caught,
        }
        for rule, session, caught in rows
    ]
    table = make_table("screening", rows)
    return Results({}, {}, {}, [], {}, {"common/screening": table})


def flags(study):
    kept = Flag.objects.filter(session__study=study, kind__in=Flag.FOUND_BY_ANALYSIS)
    return {(flag.session_id, flag.kind): flag.data["holds"] for flag in kept}


def make_rated():
    return make_answered(evaluators=3, trials=2)


@pytest.fixture
def study(once):
    return once(make_rated)


def make_contrarian(study):
    """Turn the ratings of one listener around, so that they agree with nobody; that session."""
    session = study.sessions.last()
    for answer in Answer.objects.filter(session=session):
        answer.rating = 11 - answer.rating
        answer.save()
    return session


def test_every_rule_of_the_analysis_has_a_flag_of_its_own_that_can_be_told():
    assert set(FLAG_OF_RULE) == set(DICTIONARY["rules"])
    assert set(FLAG_OF_RULE.values()) == set(Flag.FOUND_BY_ANALYSIS)
    data = {"rule": "disagrees", "task": "naturalness", "value": 0.1234, "limit": 0.3, "holds": True}
    for kind in Flag.FOUND_BY_ANALYSIS:
        flag = Flag(kind=kind, data=data)
        told = render_to_string("listening/monitor/_flag_reason.html", {"flag": flag})
        assert "ratings of naturalness: 0.123, where the limit is 0.3." in " ".join(told.split())


def test_flags_follow_what_the_newest_analysis_finds(study):
    first, second, third = study.sessions.all()
    found = results_of(study, ("disagrees", first, 1), ("disagrees", second, 0), ("bridge-outlier", first, 0))
    assert write_flags(study, found) == 1
    assert flags(study) == {(first.pk, "disagrees"): True}
    assert first.flags.get().data == {"rule": "disagrees", "value": 0.1, "limit": 0.3, "holds": True}
    write_flags(study, results_of(study, ("disagrees", first, 0), ("disagrees", second, 1)))
    assert flags(study) == {(first.pk, "disagrees"): False, (second.pk, "disagrees"): True}
    write_flags(study, results_of(study, ("disagrees", third, 0)))
    assert flags(study) == {(first.pk, "disagrees"): False, (second.pk, "disagrees"): True}


def test_one_task_is_enough_to_be_caught(study):
    first = study.sessions.first()
    write_flags(study, results_of(study, ("disagrees", first, 1), ("disagrees", first, 0)))
    assert flags(study) == {(first.pk, "disagrees"): True}


def test_sessions_left_out_keep_their_flags(study):
    first = study.sessions.first()
    write_flags(study, results_of(study, ("disagrees", first, 1)))
    study.exclusion_rules.create(flag="disagrees", reason="test").exclusions.create(session=first)
    write_flags(study, results_of(study, ("disagrees", first, 0)))
    assert flags(study) == {(first.pk, "disagrees"): True}


def test_monitor_leaves_flags_of_an_analysis_alone(study):
    first = study.sessions.first()
    write_flags(study, results_of(study, ("disagrees", first, 1)))
    flag_sessions(timezone.now(), [first.pk])
    assert flags(study) == {(first.pk, "disagrees"): True}


def test_standing_rules_catch_nobody_by_a_new_analysis(study):
    first, second, _ = study.sessions.all()
    write_flags(study, results_of(study, ("disagrees", first, 1)))
    rule, _analysis = screen_out(study=study, by=None, rule="disagrees", reason="agrees with nobody")
    assert [one.session for one in rule.exclusions.all()] == [first]
    write_flags(study, results_of(study, ("disagrees", second, 1)))
    assert rule.exclusions.count() == 1


def test_unknown_rules_and_missing_reasons_are_refused(study):
    for given in ({"rule": "whim", "reason": "because"}, {"rule": "disagrees", "reason": " "}):
        with pytest.raises(NotPossible):
            screen_out(study=study, by=None, **given)
    assert not study.exclusion_rules.exists()
    assert not study.analyses.exists()


def test_a_listener_who_agrees_with_nobody_is_left_out_with_what_that_changes():
    study = make_answered(evaluators=12, trials=8)
    session = make_contrarian(study)
    before = analysed(start_analysis(study, None, CHOSEN))
    assert flags(study)[session.pk, "disagrees"] is True
    effect = preview_effect(study, flag="disagrees")
    assert (effect.sessions, effect.answers) == ((session.pk,), 8)
    rule, after = screen_out(study=study, by=None, rule="disagrees", reason="agrees with nobody")
    assert after.chosen == before.chosen
    after = analysed(after)
    means = [
        parsed_results(one.results).table("raw", "summary").records(task="naturalness", system="original")[0]["mean"]
        for one in (before, after)
    ]
    assert means[1] > means[0]
    change = parsed_results(after.results).table("raw", "exclusion_effect")
    row = change.records(rule="standing", task="naturalness", system="original")[0]
    assert (row["listeners_before"], row["listeners_after"]) == (12, 11)
    assert np.allclose([row["mean_before"], row["mean_after"]], means)
    revoke_rule(rule=rule, by=None, now=timezone.now())
    assert start_analysis(study, None, CHOSEN).results == before.results


def test_late_sessions_are_not_lost_among_rules_of_an_analysis(study):
    """Rules by flags of the monitor still follow; an analysis' flag of a session under way says nothing yet."""
    late = make_session(study, block=None)
    late.flags.create(kind="disagrees", data={"holds": True})
    study.exclusion_rules.create(flag="disagrees", reason="test")
    assert apply_standing_rules([late.pk]) == 0
