"""What evaluators report about recordings: noted without a skip, never twice, counted on the monitor without names."""

import pytest
from django.urls import reverse
from django.utils import timezone

from listening.app.models import Session, Study
from listening.app.monitor.selectors import reported_clips
from listening.app.results.services import close_study
from listening.app.sessions import block_leases as sessions
from listening.app.sessions.block_leases import end_session
from tests.listening.answering import TAB, answer, hear, post, without_cache
from tests.listening.factories import make_session, make_study
from tests.pages import read_page

pytestmark = pytest.mark.django_db


def make_heard():
    session = make_session(make_study())
    hear(session)
    return session


@pytest.fixture
def session(client, once):
    session = without_cache(once(make_heard))
    client.force_login(session.study.edition.organizers.get())
    return session


def report(client, session, position=1, slot="a", what="noise", **more):
    body = {"tab": TAB, "position": position, "slot": slot, "what": what, "skip": False} | more
    return post(client, session, "report", body)


def skip(client, session, position=1, **more):
    return report(client, session, position, what="clip", **{"skip": True} | more)


def noted(session, kind="clip-remark"):
    return list(session.events.filter(kind=kind, is_told=False).order_by("pk").values_list("data", flat=True))


def test_note_is_kept_and_skips_nothing(client, session):
    status, reply = report(client, session, key="k-a-noise")
    assert (status, reply["skipped"], reply["next"], reply["done"]) == (200, False, 1, 0)
    session.refresh_from_db()
    assert session.skips == []
    assert noted(session) == [{"position": 1, "slot": "a", "what": "noise", "key": "k-a-noise"}]
    assert answer(client, session, 1, is_late=True)[0] == 200


def test_note_on_a_trial_that_was_answered_meanwhile_is_taken(client, session):
    assert answer(client, session, 1, is_late=True)[0] == 200
    assert report(client, session, 1, what="cut-off")[0] == 200
    assert noted(session) == [{"position": 1, "slot": "a", "what": "cut-off"}]


def test_same_note_again_is_one(client, session):
    first, second = report(client, session, key="k"), report(client, session, key="k")
    assert first == second
    assert len(noted(session)) == 1
    assert report(client, session, key="other")[0] == 200
    assert len(noted(session)) == 2


def test_criterion_04_skip_that_comes_again_after_a_lost_reply_is_one(client, session):
    first, second = skip(client, session, key="lost"), skip(client, session, key="lost")
    assert (first[0], first[1]["next"]) == (200, 2)
    assert first == second
    session.refresh_from_db()
    assert (session.skips, len(noted(session, "clip-broken"))) == ([1], 1)


def test_last_skip_that_comes_again_after_the_end_says_the_same(client, session):
    skip(client, session, key="first")
    for position in (2, 3, 4):
        assert answer(client, session, position, is_late=True)[0] == 200
    first, second = skip(client, session, key="second"), skip(client, session, key="second")
    assert first == second
    assert first[1]["address"] == f"/listen/{session.token}/"
    session.refresh_from_db()
    assert (session.state, session.skips) == (Session.State.FINISHED, [1, 1])
    assert skip(client, session, key="third")[0] == 410


def test_key_of_another_session_counts_for_nothing(client, session):
    other = make_session(session.study)
    skip(client, session, key="same")
    assert skip(client, other, key="same")[1]["next"] == 2
    other.refresh_from_db()
    assert other.skips == [1]


def test_nobody_can_say_how_a_recording_sounds_that_was_not_sent(client, session):
    session.serves.filter(trial__position=2).delete()
    status, reply = report(client, session, 2)
    assert (status, reply["problem"]) == (409, "out-of-order")
    assert noted(session) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"what": "boring"},
        {"skip": "no"},
        {"key": "k" * 41},
        {"slot": "c"},
        {"more": 1},
    ],
)
def test_faulty_report_is_refused(client, session, wrong):
    assert report(client, session, **wrong)[0] == 422
    assert noted(session) == []


def test_notes_of_a_session_are_bounded(client, session, monkeypatch):
    monkeypatch.setattr(sessions, "MOST_OF_A_KIND", 3)
    for number in range(6):
        assert report(client, session, key=f"k{number}")[0] == 200
    assert len(noted(session)) == 3


def test_recordings_are_counted_by_sessions_and_kinds(client, session):
    assert reported_clips(session.study) == []
    report(client, session, 1, "a", "noise")
    report(client, session, 1, "a", "silence")
    report(client, session, 2, "a", "other")
    skip(client, session, 1)
    own = make_session(session.study, is_preview=True)
    hear(own)
    report(client, own, 3, "a", "noise")
    stimulus = session.block.trials.get(position=1).presentation.samples.get(slot="a").stimulus
    first, second = reported_clips(session.study)
    counts = {"Silence": 1, "Cut off": 0, "Noise": 1, "Other": 0, "Does not play": 1}
    assert first == {"stimulus": stimulus.pk, "name": "", "counts": counts, "sessions": 1}
    assert second["counts"] == dict.fromkeys(counts, 0) | {"Other": 1}


def test_monitor_names_no_system_of_a_reported_recording_before_the_study_is_closed(client, session):
    place = next(
        number for number in range(1, 5) if session.block.trials.get(position=number).presentation.condition.code
    )
    report(client, session, place, "a", "noise")
    stimulus = session.block.trials.get(position=place).presentation.samples.get(slot="a").stimulus
    name = f"{stimulus.condition.code}, {stimulus.item.name}"
    address = reverse("studies:live", args=[session.study.name])
    part = read_page(client.get(address)).split('id="recordings"')[1].split("</section>")[0]
    assert f">{stimulus.pk}</th>" in part
    assert stimulus.condition.code not in part
    assert stimulus.item.name not in part
    end_session(session, "expired", timezone.now())
    close_study(study=session.study, by=None, now=timezone.now())
    part = read_page(client.get(address)).split('id="recordings"')[1].split("</section>")[0]
    assert f"{stimulus.pk} ({name})" in part


def test_counting_costs_two_queries_however_much_is_reported(client, session, django_assert_num_queries):
    study = Study.objects.get(pk=session.study_id)
    for position in (1, 2, 3, 4):
        report(client, session, position)
        with django_assert_num_queries(2):
            assert len(reported_clips(study)) >= 1
