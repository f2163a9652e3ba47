"""What a hostile evaluator sends to fill a record with what no database takes, or with more than anybody reads."""

import pytest

from listening.app.sessions import block_leases as sessions
from listening.app.sessions.answers import most_given_up
from tests.listening.answering import post
from tests.listening.factories import make_session, make_study
from tests.listening.form_factories import make_board_study
from tests.listening.visits import Visit

pytestmark = pytest.mark.django_db


def test_device_is_kept_without_signs_that_no_database_takes():
    visit = Visit(make_study(screening={"sound": True, "headphones": "none"}))
    visit.consent()
    visit.ask("get", visit.sounds()[0])
    right = visit.session.screening_results.get(is_passed=None).secret["right"]
    given = {f"answer{place}": answer for place, answer in enumerate(right, 1)}
    told = {"context_state": "run\0ning\n", "sample_rate": "\0", "screen": "x" * 500}
    assert visit.post("sound", attempt=1, **given, **told).status_code == 302
    device = visit.session.device
    assert (device["context_state"], len(device["screen"])) == ("running", 60)
    assert "sample_rate" not in device
    assert visit.session.step == "role-play"


def test_switching_without_end_fills_no_record(client, monkeypatch):
    monkeypatch.setattr(sessions, "MOST_OF_A_KIND", 5)
    session = make_session(make_study())
    for number in range(12):
        assert post(client, session, "take-over", {"tab": f"tab-{number}"})[0] == 200
        language = ("fr", "en")[number % 2]
        assert client.post(f"/listen/{session.token}/language/", {"language": language}).status_code == 302
    session.refresh_from_db()
    assert (session.tab, session.language) == ("tab-11", "en")
    assert session.events.filter(kind="taken-over").count() == 5
    assert session.events.filter(kind="language").count() == 5
    client.post(f"/listen/{session.token}/withdraw/")
    assert session.events.filter(kind="ended-withdrawn").count() == 1


@pytest.mark.parametrize(("total", "most"), [(2, 0), (5, 2), (52, 5)])
def test_nobody_comes_to_the_end_by_giving_up_half(total, most):
    assert most_given_up(total) == most


def test_boards_that_nobody_placed_finish_no_block(client):
    session = make_session(make_board_study(boards=2))
    for position in (1, 2, 1):
        body = {"tab": "tab", "position": position, "slot": "1", "what": "clip"}
        assert post(client, session, "report", body)[0] == 200
    session.refresh_from_db()
    assert (session.state, session.answers.count()) == ("technical", 0)
    assert not session.block.is_finished
