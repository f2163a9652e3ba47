"""Completion codes come from the server alone, after the end alone, one for each outcome."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.utils import timezone

from listening.app.models import Session
from listening.app.sessions.block_leases import end_session
from listening.app.sessions.platforms import release_code
from tests.listening.answering import answer_all
from tests.listening.factories import make_session, make_study
from tests.listening.visits import PERSON, PLAIN, Visit, text_of, to_trials

pytestmark = pytest.mark.django_db
CODES = {"complete": "ALLDONE1", "screened-out": "NOTTHIS2", "failed-attention": "NOGOLD3", "technical": "OURS4"}


def make_prolific(codes, **fields):
    return make_study(platform="prolific", platform_settings={"codes": codes}, screening=PLAIN, **fields)


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ("finished", "ALLDONE1"),
        ("screened-out", "NOTTHIS2"),
        ("failed-attention", "NOGOLD3"),
        ("technical", "OURS4"),
        ("expired", ""),
        ("withdrawn", ""),
    ],
)
def test_criterion_20_each_outcome_of_prolific_has_its_code(state, code):
    session = make_session(make_prolific(CODES))
    end_session(session, state, timezone.now())
    session.refresh_from_db()
    assert session.completion_code == code


def test_who_failed_the_attention_checks_is_paid_where_the_study_has_no_code_for_it():
    session = make_session(make_prolific({"complete": "ALLDONE1"}))
    end_session(session, "failed-attention", timezone.now())
    assert session.completion_code == "ALLDONE1"


def test_criterion_20_no_page_before_the_end_holds_a_code():
    visit = Visit(make_prolific(CODES), PERSON)
    pages = [
        visit.page(),
        visit.consent(),
        visit.page(),
        visit.post("role-play"),
        visit.ask("get", f"{visit.address}withdraw/"),
    ]
    early = [visit.post("end"), visit.post("trials"), visit.post("finished"), visit.post("again")]
    for response in (*pages, *early):
        told = response.content.decode() + str(response.headers)
        assert [code for code in CODES.values() if code in told] == []
    assert (visit.session.completion_code, visit.session.state) == ("", "active")


def test_criterion_20_way_back_to_prolific_carries_the_code_of_the_outcome():
    visit = to_trials(make_prolific(CODES), PERSON)
    end_session(visit.session, "finished", timezone.now())
    page = visit.page().content.decode()
    assert 'href="https://app.prolific.com/submissions/complete?cc=ALLDONE1"' in page
    assert [code for code in CODES.values() if code in page] == ["ALLDONE1"]


def test_criterion_20_minted_codes_are_random_and_guesses_or_early_ones_do_not_work():
    study = make_study(evaluators=3)
    first, second, active = (make_session(study) for _ in range(3))
    for session in (first, second):
        end_session(session, "finished", timezone.now())
    assert first.completion_code != second.completion_code
    assert len(first.completion_code) == 11
    active.refresh_from_db()
    assert active.completion_code == ""
    guesses = ("AAAAA-AAAAA", active.token, active.withdrawal_code, first.completion_code[:-1])
    assert not study.sessions.filter(completion_code__in=guesses).exists()


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_releases_at_once_agree_on_one_code():
    session = make_session(make_study())
    Session.objects.filter(pk=session.pk).update(state="finished")

    def release(_):
        try:
            return release_code(Session.objects.select_related("study").get(pk=session.pk))
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        codes = set(pool.map(release, range(8)))
    session.refresh_from_db()
    assert codes == {session.completion_code} != {""}


# Sessions that were finished without listening ---------------------------------------------------------


PLAYED = [{"slot": slot, "started_ms": 0, "heard_ms": 60_000, "is_whole": True} for slot in "ab"]


@pytest.mark.parametrize(
    ("codes", "code", "told"),
    [
        (CODES, "NOGOLD3", "Go back to Prolific with the button"),
        ({"complete": "ALLDONE1"}, "CHECK-", "return your submission on Prolific, and send this reference"),
    ],
)
def test_criterion_32_who_never_played_a_recording_gets_a_code_that_tells_it(client, codes, code, told):
    session = make_session(make_prolific(codes, pay_per_hour=12), step="trials")
    answer_all(client, session)
    session.refresh_from_db()
    assert (session.state, session.completion_code.startswith(code)) == ("finished", True)
    page = text_of(client.get(session.get_absolute_url()))
    assert told in page
    assert "for the full pay" not in page


def test_who_played_every_recording_gets_the_code_for_all(client):
    session = make_session(make_prolific(CODES), step="trials")
    answer_all(client, session, plays=PLAYED)
    session.refresh_from_db()
    assert session.completion_code == "ALLDONE1"
