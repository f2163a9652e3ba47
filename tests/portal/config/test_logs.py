"""What is written to the log when something fails."""

import logging

import pytest
from django.test import Client

from listening.app.sessions import views
from portal.core.logs import WithoutSecrets
from tests.listening.factories import make_session, make_study


def logged(message, *args):
    record = logging.LogRecord("django.request", logging.ERROR, __file__, 1, message, args, None)
    assert WithoutSecrets().filter(record)
    return record.getMessage()


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/listen/tV2jIrd5vGOikAMPb0Mgs8wKDwtdL1Zg/answers", "/listen/…/answers"),
        ("/listen/tV2jIrd5vGOikAMPb0Mgs8wKDwtdL1Zg/", "/listen/…/"),
        ("/media/WyJh:1s:x_-y", "/media/…"),
        ("/listen/join/O69NtopoiZSA_CNO/", "/listen/join/O69NtopoiZSA_CNO/"),
        ("/listen/withdraw/", "/listen/withdraw/"),
        ("/studies/first/", "/studies/first/"),
    ],
)
def test_address_that_opens_something_is_not_logged(path, told):
    assert logged("%s: %s", "Internal Server Error", path) == f"Internal Server Error: {told}"


def test_other_messages_stay_as_they_are():
    assert logged("%d of %d %%", 1, 2) == "1 of 2 %"


@pytest.mark.django_db
def test_failure_in_a_session_tells_no_token(monkeypatch, caplog):
    session = make_session(make_study())

    def fail(*_args):
        raise RuntimeError("the database is gone")

    monkeypatch.setattr(views, "describe_state", fail)
    assert Client(raise_request_exception=False).get(f"/listen/{session.token}/state").status_code == 500
    assert "Internal Server Error: /listen/…/state" in caplog.text
    assert session.token not in caplog.text
