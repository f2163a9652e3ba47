"""What Sentry gets: where and how something failed, and nothing of what was at work."""

import logging

import pytest
import sentry_sdk
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.test import Client

from listening.app.sessions import answers
from portal.core import sentry
from portal.core.logs import request_id
from tests.listening.answering import payload
from tests.listening.factories import make_session, make_study
from tests.sentry_double import listen_as_sentry

pytestmark = pytest.mark.django_db
SPEAKER, MAIL, WORDS = "Ada-Lovelace-0042", "ada@speech.example", "the secret words that she said"
TOKEN = "vpt_0f1e2d3c4b5a69788796a5b4c3d2e1f0"
TOLD = f"{SPEAKER} <{MAIL}> said: {WORDS}; /media/WyJhIl0:1s:x_-y /srv/portal/{SPEAKER}.wav"


@pytest.fixture
def double(settings):
    with listen_as_sentry() as double:
        settings.SENTRY_DSN = double.dsn
        request_id.set("")
        before = sentry_sdk.get_global_scope().client
        sentry.start_reports()
        yield double
        sentry_sdk.get_client().close(timeout=5)
        sentry_sdk.get_global_scope().set_client(before)


def wait_for_events(double, count=1):
    sentry.flush_reports()
    assert len(double.events) == count
    return double.events


def require_nothing_private(double, *more):
    assert double.text
    for private in (SPEAKER, MAIL, WORDS, TOKEN, "WyJhIl0", *more):
        assert private.lower() not in double.text.lower(), private


def names_of_frames(event):
    return [frame["function"] for frame in event["exception"]["values"][-1]["stacktrace"]["frames"]]


def test_error_of_an_evaluators_answer_is_sent_without_session_and_answer(double, monkeypatch):
    def break_down(*given, **_):
        told = f"{TOLD} {given}"
        logging.getLogger("portal.test").warning("about to fail: %s", told)
        raise ValueError(told)

    monkeypatch.setattr(answers, "_save", break_down)
    session = make_session(make_study())
    client = Client(raise_request_exception=False)
    client.cookies["sessionid"] = TOKEN
    body = payload(1, 7, remark=WORDS)
    address = f"/listen/{session.token}/answers?person={SPEAKER}"
    headers = {"authorization": f"Bearer {TOKEN}", "x-request-id": "proxy-17", "user-agent": MAIL, "referer": TOLD}
    reply = client.post(address, body, content_type="application/json", headers=headers)
    assert reply.status_code == 500
    [event] = wait_for_events(double)
    require_nothing_private(double, session.token, "first-tab")
    assert event["exception"]["values"][-1]["type"] == "ValueError"
    assert names_of_frames(event)[-1] == "break_down"
    assert "listening/app/sessions/answers.py" in {
        frame["filename"] for frame in event["exception"]["values"][-1]["stacktrace"]["frames"]
    }
    assert (event["tags"], event["logger"]) == ({"request": "proxy-17"}, "django.request")
    [crumb] = [one for one in event["breadcrumbs"]["values"] if one["category"] == "portal.test"]
    assert crumb["message"].startswith("portal.test, break_down, line ")
    assert "request" not in event
    assert "user" not in event


def test_without_the_package_commands_say_what_to_install(settings, monkeypatch, caplog):
    settings.SENTRY_DSN = "https://key@sentry.example/1"
    monkeypatch.setattr("common.packages.find_spec", lambda _: None)
    sentence = (
        "PORTAL_SENTRY_DSN needs the package sentry-sdk, which is not installed here. "
        "Install it with “.venv/bin/python -m pip install -r requirements/sentry.txt”."
    )
    with pytest.raises(SystemCheckError, match=r"portal\.E001"):
        call_command("check")
    assert [one.msg for one in sentry.check_package(None)] == [sentence]
    sentry.start_reports()
    assert caplog.messages == [sentence]
    sentry.flush_reports()


def test_without_a_dsn_nothing_is_loaded(settings):
    settings.SENTRY_DSN = ""
    sentry.start_reports()
    assert not sentry_sdk.is_initialized()
    assert sentry.check_package(None) == []
