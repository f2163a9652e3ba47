"""Withdrawing: from any page and afterwards by code, all answers are deleted and the block is free again."""

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from listening.app.models import Answer, Play, ScreeningResult, Serve, SessionEvent
from listening.app.sessions.block_leases import end_session
from listening.app.studies.settings import DEFAULT_QUESTIONNAIRE
from listening.app.withdrawal import services
from portal.core.models import AuditEvent
from tests.listening.factories import make_session, make_study
from tests.listening.visits import PERSON, PLAIN, Visit, text_of, to_trials

pytestmark = pytest.mark.django_db
BY_CODE = "/listen/withdraw/"
CODES = {"codes": {"complete": "ALLDONE1"}}


@pytest.fixture(autouse=True)
def _fresh_counters():
    cache.clear()


def fill(session):
    """Something of each kind that a session leaves behind."""
    trial, now = session.block.trials.first(), timezone.now()
    session.answers.create(trial=trial, task="naturalness", rating=7, received_at=now)
    session.plays.create(trial=trial, slot="a", started_ms=1, heard_ms=600, is_whole=True)
    session.serves.create(trial=trial, slot="a", first_at=now)
    session.events.create(kind="blur")
    session.flags.create(kind="too-fast")
    session.screening_results.create(kind="sound", attempt=9, given=[1], is_passed=True)
    session.questionnaire = {"age": "30-39"}
    session.save()


def left(session):
    session.refresh_from_db()
    assert (session.block, session.consented_at, session.skips) == (None, None, [])
    rows = [Answer, Play, Serve, ScreeningResult, SessionEvent]
    kept = [row.objects.filter(session=session).exclude(**_own(row)).count() for row in rows]
    return (
        sum(kept) + session.flags.count(),
        session.questionnaire,
        session.platform_data,
        session.device,
        session.texts,
    )


def _own(row):
    return {"kind": "ended-withdrawn"} if row is SessionEvent else {"pk": None}


@pytest.mark.postgres
def test_criterion_23_withdrawal_deletes_everything_and_says_so():
    study = make_study(platform="prolific", platform_settings=CODES, screening=PLAIN, evaluators=1)
    visit = to_trials(study, PERSON)
    fill(visit.session)
    asked = visit.ask("get", f"{visit.address}withdraw/")
    assert "cannot be brought back" in text_of(asked)
    assert Answer.objects.count() == 1
    done = visit.ask("post", f"{visit.address}withdraw/")
    assert done.status_code == 302
    assert "All your answers are deleted" in visit.text()
    assert "ALLDONE1" not in visit.page().content.decode()
    session = visit.session
    assert left(session) == (0, {}, {}, {}, {})
    assert (session.state, session.participant.platform_id) == ("withdrawn", "")
    assert session.participant.person_key.startswith("withdrawn-")
    block = study.blocks.get()
    assert (block.holder, block.is_finished, block.lease_expires_at) == (None, False, None)
    assert AuditEvent.objects.get(action="study.session_withdrawn").data == {"session": session.pk, "answers": 1}


def test_criterion_23_every_page_has_the_way_out():
    study = make_study(screening=PLAIN | {"sound": True, "headphones": "both"}, questionnaire=DEFAULT_QUESTIONNAIRE)
    visit = Visit(study)
    about = {"age": "30-39", "gender": "other", "native_language": "en", "hearing": "no"}
    out = f'href="{visit.address}withdraw/"'
    for take in (
        lambda: visit.consent(),
        lambda: visit.post("questions", **about),
        lambda: visit.answer_test("sound"),
        lambda: visit.answer_test("headphones"),
        lambda: visit.answer_test("headphones"),
        lambda: visit.post("role-play"),
        lambda: end_session(visit.session, "finished", timezone.now()),
    ):
        assert out in visit.page().content.decode(), visit.session.step
        take()
    assert visit.session.state == "finished"
    assert out in visit.page().content.decode()


@pytest.mark.parametrize("step", ["consent", "trials"])
def test_withdrawal_works_at_every_step(step):
    visit = Visit(make_study(screening=PLAIN))
    if step == "trials":
        visit.consent()
        visit.post("role-play")
    assert visit.session.step == step
    visit.ask("post", f"{visit.address}withdraw/")
    assert (visit.session.state, left(visit.session)[0]) == ("withdrawn", 0)
    for again in ("get", "post"):
        assert visit.ask(again, f"{visit.address}withdraw/").status_code == 302
    assert AuditEvent.objects.filter(action="study.session_withdrawn").count() == 1


def test_criterion_23_withdrawal_after_completion_by_code_frees_the_block():
    study = make_study(evaluators=1)
    session = make_session(study)
    fill(session)
    end_session(session, "finished", timezone.now())
    assert study.blocks.get().is_finished
    end = text_of(Client().get(session.get_absolute_url()))
    assert session.withdrawal_code in end
    letters = session.withdrawal_code.replace("-", "")
    typed = f"  {letters[:4].upper()} –{letters[4:8]}..{letters[8:]} "
    answer = Client().post(BY_CODE, {"code": typed})
    assert "<h1>Your answers are deleted</h1>" in answer.content.decode()
    assert (answer.status_code, "Your answers are deleted" in text_of(answer)) == (200, True)
    assert left(session) == (0, {}, {}, {}, {})
    block = study.blocks.get()
    assert (block.holder, block.is_finished) == (None, False)
    assert session.completion_code != ""  # what was promised is still paid
    again = Client().post(BY_CODE, {"code": letters})
    assert "Your answers are deleted" in text_of(again)


def test_withdrawal_leaves_everybody_elses_answers():
    study = make_study(evaluators=2)
    mine, theirs = make_session(study), make_session(study)
    fill(mine)
    fill(theirs)
    services.withdraw(mine, timezone.now())
    assert list(Answer.objects.values_list("session", flat=True)) == [theirs.pk]
    theirs.refresh_from_db()
    assert (theirs.state, theirs.questionnaire, theirs.held_block) == ("active", {"age": "30-39"}, theirs.block)


def test_withdrawal_takes_all_sessions_of_the_person():
    study = make_study(evaluators=2)
    first = make_session(study)
    fill(first)
    end_session(first, "expired", timezone.now())
    second = study.sessions.create(participant=first.participant, step="trials", block=study.blocks.last())
    fill(second)
    services.withdraw(second, timezone.now())
    first.refresh_from_db()
    assert (Answer.objects.count(), first.state, first.questionnaire) == (0, "withdrawn", {})


def test_wrong_code_is_told_and_guessing_is_slowed_down():
    make_session(make_study())
    client = Client()
    assert client.get(BY_CODE).status_code == 200
    empty = client.post(BY_CODE, {"code": ""})
    assert (empty.status_code, "Please enter your withdrawal code." in text_of(empty)) == (422, True)
    for _ in range(20):
        assert client.post(BY_CODE, {"code": "aaaa-bbbb-cccc-dddd"}).status_code == 422
    refused = client.post(BY_CODE, {"code": "aaaa-bbbb-cccc-dddd"})
    assert (refused.status_code, "try again in an hour" in text_of(refused)) == (429, True)
    elsewhere = Client(REMOTE_ADDR="192.0.2.7").post(BY_CODE, {"code": "aaaa-bbbb-cccc-dddd"})
    assert elsewhere.status_code == 422


def test_language_that_is_chosen_before_withdrawing_leads_back_there():
    visit = to_trials(make_study(screening=PLAIN))
    asked = f"{visit.address}withdraw/"
    assert "is_withdrawing" in visit.ask("get", asked).content.decode()
    answer = visit.ask("post", f"{visit.address}language/", {"language": "fr", "is_withdrawing": "on"})
    assert (answer.headers["Location"], "Me retirer" in text_of(visit.ask("get", asked))) == (asked, True)
    assert visit.ask("post", f"{visit.address}language/", {"language": "en"}).headers["Location"] == visit.address
