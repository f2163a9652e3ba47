"""Errors in the real programs reach Sentry: of a job in a process of a worker, of the scheduler, of the web server."""

import requests

from listening.app.models import Study
from portal.jobs.services import create_job
from tests.listening.factories import make_session, make_study
from tests.portal.processes.programs import wait_for_end, wait_until
from tests.portal.processes.uploading import WebServer
from tests.sentry_double import listen_as_sentry

SPEAKER, WORDS = "Ada-Lovelace-0042", "the secret words that she said"
TOLD = f"{SPEAKER} <ada@speech.example> said: {WORDS}"


def last_function(event):
    return event["exception"]["values"][-1]["stacktrace"]["frames"][-1]["function"]


def require_nothing_private(double):
    assert [one for one in (SPEAKER, WORDS, "ada@speech") if one in double.text] == []


def test_error_of_a_worker_is_sent(alone):
    with listen_as_sentry() as double:
        alone.start_worker(concurrency=1, PORTAL_SENTRY_DSN=double.dsn)
        job = create_job(kind="test-told", title=TOLD, parameters={"sentence": TOLD})
        assert TOLD in wait_for_end(job).failure
        [event] = wait_until(lambda: double.events, "a report of the worker")
        alone.kill_all()
    assert (last_function(event), event["tags"]) == ("told", {"job": str(job.pk)})
    require_nothing_private(double)


def test_error_of_the_web_server_is_sent(alone):
    session = make_session(make_study())
    Study.objects.update(questionnaire=[SPEAKER])  # no questionnaire: the evaluator's page cannot be made
    with listen_as_sentry() as double:
        server = WebServer(alone, PORTAL_SENTRY_DSN=double.dsn)
        page = f"{server.address}/listen/{session.token}/?person={SPEAKER}"
        assert requests.get(page, cookies={"sessionid": WORDS}, timeout=60).status_code == 500
        [event] = wait_until(lambda: double.events, "a report of the web server")
        alone.kill_all()
    assert (event["logger"], list(event["tags"])) == ("django.request", ["request"])
    assert session.token not in double.text
    require_nothing_private(double)
