"""What is written to the log when something fails."""

import json
import logging

import pytest
from django.test import Client, RequestFactory

from listening.app.sessions import views
from portal.core import logs
from portal.core.logs import WithoutSecrets, hide_secrets_of_server
from tests.listening.factories import make_session, make_study


def logged(message, *args):
    record = logging.LogRecord("django.request", logging.ERROR, __file__, 1, message, args, None)
    assert WithoutSecrets().filter(record)
    return record.getMessage()


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/listen/tV2jIrd5vGOikAMPb0Mgs8wKDwtdL1Zg/answers", "/listen/…/answers"),
        ("/media/WyJh:1s:x_-y", "/media/…"),
        ("/listen/join/O69NtopoiZSA_CNO/?person=7", "/listen/join/…/?person=7"),
        ("/log-in/?next=/teams/invitations/8ZqYb-1_x/", "/log-in/?next=/teams/invitations/…/"),
        (
            "/sign-up/?next=%2Fteams%2Finvitations%2F8ZqYb-1_x%2F&a=b",
            "/sign-up/?next=%2Fteams%2Finvitations%2F…%2F&a=b",
        ),
        ("/sign-up/confirm/Mw:1uX:k-8_/", "/sign-up/confirm/…/"),
        ("/password/3-d4f5-0a1b2c/", "/password/…/"),
        ("/first-account/8ZqYb-1_x/", "/first-account/…/"),
        ("/teams/7/invitations/3/revoke/", "/teams/7/invitations/3/revoke/"),
    ],
)
def test_address_that_opens_something_is_not_logged(path, told):
    assert logged("%s: %s", "Internal Server Error", path) == f"Internal Server Error: {told}"


def test_log_of_accesses_of_the_web_server_holds_no_secret(caplog):
    """As gunicorn writes it, the page that led there included."""
    hide_secrets_of_server()
    secret, log = "8ZqYb-1_x", logging.getLogger("gunicorn.access")
    told = {"r": f"GET /teams/invitations/{secret}/ HTTP/1.1", "f": f"https://p.example/teams/invitations/{secret}/"}
    with caplog.at_level("INFO", "gunicorn.access"):
        log.info('"%(r)s" "%(f)s"', told)
    assert caplog.messages == ['"GET /teams/invitations/…/ HTTP/1.1" "https://p.example/teams/invitations/…/"']


@pytest.mark.django_db
def test_requests_for_a_foreign_host_are_told_once_a_minute_in_a_line(caplog):
    caplog.handler.addFilter(logs.BriefRefusals())
    try:
        client = Client()
        for host in ("evil.example", "other.example", "x" * 5000):
            assert client.get("/", headers={"host": host}).status_code == 400
    finally:
        caplog.handler.filters.clear()
    [told] = [one for one in caplog.records if one.name == "django.security.DisallowedHost"]
    assert (told.levelname, told.exc_info) == ("WARNING", None)
    assert told.getMessage().startswith("Invalid HTTP_HOST header: 'evil.example'.")


@pytest.mark.django_db
def test_failure_in_a_session_tells_no_token(monkeypatch, caplog):
    session = make_session(make_study())

    def fail(*_args):
        raise RuntimeError("the database is gone")

    monkeypatch.setattr(views, "describe_state", fail)
    assert Client(raise_request_exception=False).get(f"/listen/{session.token}/state").status_code == 500
    assert "Internal Server Error: /listen/…/state" in caplog.text
    assert session.token not in caplog.text


def test_json_line_has_the_ids_and_no_secret():
    record = logging.LogRecord("portal", logging.ERROR, __file__, 1, "lost %s", ("/media/WyJh:1s:x_-y",), None)
    WithoutSecrets().filter(record)
    logs.request_id.set("")
    held = logs.job_id.set("a-job")
    try:
        line = json.loads(logs.JsonLine().format(record))
    finally:
        logs.job_id.reset(held)
    assert {key: line[key] for key in line if key != "time"} == {
        "level": "ERROR",
        "logger": "portal",
        "message": "lost /media/…",
        "job": "a-job",
    }


@pytest.mark.parametrize(("given", "is_taken"), [("from-the-proxy", True), ("not an id", False), ("", False)])
def test_request_has_the_id_of_the_proxy_or_one_of_its_own(given, is_taken):
    logs.request_id.set("of the request before")
    logs.name_request(lambda _: None)(RequestFactory().get("/", headers={"x-request-id": given}))
    seen = logs.request_id.get()
    assert (seen == given) is is_taken
    assert seen not in ("", "of the request before")
