"""Leaving sessions out: shown before, reversible, written down; blocks are offered again whole."""

import pytest
from django.urls import reverse
from django.utils import timezone

from listening.app.models import Answer, Exclusion, ExclusionRule, Study
from listening.app.monitor import services
from listening.app.monitor.selectors import measure_coverage
from listening.app.monitor.services import flag_sessions
from listening.app.sessions.block_leases import assign_block
from portal.core.models import AuditEvent
from portal.jobs.services import NotPossible
from tests.listening.session_factories import by_place, make_finished_session, make_session, make_study
from tests.pages import read_page

pytestmark = pytest.mark.django_db
LINING = "straight-lining"


def make_lined():
    """A finished session with one and the same rating, looked at; there is an attentive one too."""
    study = make_study(evaluators=4, trials=12)
    session = make_finished_session(study, by_place(7))
    make_finished_session(study)
    flag_sessions(timezone.now())
    return session


@pytest.fixture
def lined(once):
    return once(make_lined)


@pytest.fixture
def study(lined):
    return lined.study


@pytest.fixture
def organizer(study):
    return study.edition.organizers.get()


def leave_out(study, organizer, *, reason="Rated without listening.", **what):
    return services.create_rule(study=study, by=organizer, reason=reason, **what)


def revoke(rule, organizer):
    return services.revoke_rule(rule=rule, by=organizer, now=timezone.now())


def usable(study):
    return measure_coverage(study).total.usable


def log(study):
    return list(AuditEvent.objects.filter(subject_type="listening.study", subject_id=str(study.pk)).order_by("pk"))


def test_effect_is_told_before_anything_is_done(study, lined):
    effect = services.preview_effect(study, flag=LINING)
    assert (effect.sessions, effect.answers, effect.blocks) == ((lined.pk,), 12, 1)
    assert (effect.before.total.usable, effect.after.total.usable) == (24, 12)
    assert effect.changes[0] == ("original", 24, 12, 6)
    assert usable(study) == 24
    assert not ExclusionRule.objects.exists()


def test_criterion_25_exclusion_is_a_reversible_logged_rule_with_before_and_after(study, lined, organizer):
    rule = leave_out(study, organizer, flag=LINING, reason="Rated without listening.")
    assert usable(study) == 12
    assert Answer.objects.filter(session=lined).count() == 36  # nothing is deleted
    assert revoke(rule, organizer) == [lined.pk]
    assert usable(study) == 24
    made, revoked = log(study)
    assert (made.action, made.actor) == ("study.sessions_excluded", organizer)
    assert made.data["reason"] == "Rated without listening."
    assert (made.data["before"]["answers"], made.data["after"]["answers"]) == (24, 12)
    assert (made.data["before"]["systems"]["original"], made.data["after"]["systems"]["original"]) == (12, 6)
    assert revoked.action == "study.exclusion_revoked"
    assert (revoked.data["before"]["answers"], revoked.data["after"]["answers"]) == (12, 24)
    with pytest.raises(NotPossible, match="revoked already"):
        revoke(rule, organizer)


def test_session_two_rules_leave_out_counts_again_only_without_both(study, lined, organizer):
    by_flag = leave_out(study, organizer, flag=LINING)
    by_name = leave_out(study, organizer, session=lined)
    assert revoke(by_flag, organizer) == []
    assert usable(study) == 12
    assert revoke(by_name, organizer) == [lined.pk]


def test_revoked_rule_catches_nobody_any_more(study, lined, organizer):
    revoke(leave_out(study, organizer, flag=LINING), organizer)
    make_finished_session(study, by_place(3))
    flag_sessions(timezone.now())
    assert usable(study) == 36


@pytest.mark.postgres
def test_standing_rule_is_applied_once_however_many_schedulers_do_it(db):
    study = make_study(evaluators=2, trials=8)
    rule = leave_out(study, None, flag=LINING)
    session = make_finished_session(study, by_place(3))
    session.flags.create(kind=LINING, data={"holds": True})
    assert services.apply_standing_rules([session.pk]) == 1
    assert services._follow(rule, session) is False
    assert [event.action for event in log(study)] == ["study.sessions_excluded", "study.session_excluded"]


def test_flag_that_no_longer_holds_leaves_nobody_out(study, lined, organizer):
    flag = lined.flags.get()
    flag.data |= {"holds": False}
    flag.save()
    leave_out(study, organizer, flag=LINING)
    assert not Exclusion.objects.exists()


def test_block_of_a_session_left_out_is_leased_whole_to_the_next(study, lined, organizer):
    leave_out(study, organizer, flag=LINING)
    lined.block.refresh_from_db()
    assert (lined.block.holder, lined.block.is_finished) == (None, False)
    participant = study.participants.create(person_key="somebody new")
    newcomer = study.sessions.create(participant=participant)
    assert assign_block(newcomer, timezone.now()) == lined.block
    assert newcomer.block.trials.count() == 12


def test_revoking_gives_the_block_back_unless_somebody_has_taken_it(study, lined, organizer):
    revoke(leave_out(study, organizer, flag=LINING), organizer)
    lined.block.refresh_from_db()
    assert (lined.block.holder, lined.block.is_finished) == (lined, True)
    rule = leave_out(study, organizer, flag=LINING)
    newcomer = study.sessions.create(participant=study.participants.create(person_key="somebody new"))
    assign_block(newcomer, timezone.now())
    revoke(rule, organizer)
    lined.block.refresh_from_db()
    assert lined.block.holder == newcomer
    assert usable(study) == 24


def test_block_is_kept_where_the_rule_says_so_or_the_study_is_closed(study, lined, organizer):
    revoke(leave_out(study, organizer, flag=LINING, offers_block_again=False), organizer)
    Study.objects.filter(pk=study.pk).update(state="closed")
    leave_out(study, organizer, flag=LINING)
    lined.block.refresh_from_db()
    assert (lined.block.holder, lined.block.is_finished) == (lined, True)


def test_everything_wrong_with_a_rule_is_told_at_once(study, lined, organizer):
    with pytest.raises(NotPossible) as refused:
        leave_out(study, organizer, reason="  ")
    assert "A reason is needed" in str(refused.value)
    assert "Choose a flag or a session, not both." in str(refused.value)
    leave_out(study, organizer, flag=LINING)
    with pytest.raises(NotPossible, match="is in force already"):
        leave_out(study, organizer, flag=LINING)
    with pytest.raises(NotPossible, match="no flag named"):
        leave_out(study, organizer, flag="nonsense")
    assert ExclusionRule.objects.count() == 1


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"state": "active"}, "still under way"),
        ({"state": "withdrawn"}, "withdrew"),
        ({"state": "finished", "is_preview": True}, "no such session"),
    ],
)
def test_session_that_cannot_be_left_out_says_why(study, organizer, fields, sentence):
    with pytest.raises(NotPossible, match=sentence):
        leave_out(study, organizer, session=make_session(study, **fields))


# Page ----------------------------------------------------------------------------------------------


def page_of(study, query=""):
    return reverse("studies:exclusions", args=[study.name]) + query


def test_page_shows_the_effect_makes_the_rule_and_revokes_it(study, lined, organizer, client):
    client.force_login(organizer)
    text = read_page(client.get(page_of(study, f"?flag={LINING}")))
    assert "<b>1 session</b> with <b>12 usable answers</b>" in text
    assert client.post(page_of(study, f"?flag={LINING}"), {"reason": ""}).status_code == 422
    assert not ExclusionRule.objects.exists()
    answer = {"reason": "Rated without listening.", "offers_block_again": "on"}
    assert client.post(page_of(study, f"?flag={LINING}"), answer).status_code == 302
    text = read_page(client.get(page_of(study)))
    assert "Rated without listening." in text
    assert "24 → 12" in text
    rule = ExclusionRule.objects.get()
    client.post(reverse("studies:revoke", args=[study.name, rule.pk]))
    assert "12 → 24" in read_page(client.get(page_of(study)))
    rule.refresh_from_db()
    assert rule.revoked_by == organizer
