"""Accepting an answer of three ratings, against a bare Django view that writes one row, on a database of its own.

Run from the root of the repository: ``python -m benchmarks.answers``. Both are requests to the whole WSGI application
with all its middleware, in turns, in one process and without a network. An answer is one of 52 trials of a session
whose clips have been sent: it is validated, gated, stored with two plays, and answered with the trials ahead. The
yardstick decodes the same JSON and creates one row. Time is this process's own where the database is in it (SQLite), so
that a busy machine disturbs little, and by the clock where it is not: `PORTAL_DATABASE_URL` names a PostgreSQL.
Prints (answer) / (bare view) by median and by 95th percentile; the first must stay at or below 2.
"""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
from collections.abc import Callable
from statistics import median, quantiles
from time import perf_counter, process_time
from typing import Any

BUDGET, SESSIONS, TRIALS = 2.0, 12, 52
HANDLER = "benchmarks.answers"


def main() -> int:
    """Print times and ratio; the exit status is 1 above the budget."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"PORTAL_DATA_DIR": folder, "DJANGO_SETTINGS_MODULE": "tests.settings"}
        import django

        django.setup()
        from django.test.utils import get_runner, override_settings, setup_test_environment

        setup_test_environment()
        from django.conf import settings

        runner = get_runner(settings)(verbosity=0)
        databases = runner.setup_databases()
        try:
            with override_settings(ROOT_URLCONF=HANDLER, ALLOWED_HOSTS=["*"]):
                return _measure()
        finally:
            runner.teardown_databases(databases)


def __getattr__(name: str) -> Any:
    """The addresses of the portal and that of the bare view, which Django looks up here once it is set up."""
    if name != "urlpatterns":
        raise AttributeError(name)
    from django.urls import include, path
    from django.views.decorators.csrf import csrf_exempt

    return [path("bare", csrf_exempt(_bare_view)), path("", include("portal.config.urls"))]


def _bare_view(request: Any) -> Any:
    from django.http import JsonResponse

    from listening.app.models import SessionEvent

    told = json.loads(request.body)
    SessionEvent.objects.create(session_id=told["session"], kind="bare", data=told["answers"])
    return JsonResponse({"saved": True})


def _measure() -> int:
    from django.core.handlers.wsgi import WSGIHandler
    from django.db import connection

    from tests.listening.answering import hear, payload
    from tests.listening.factories import make_session, make_study

    study = make_study(evaluators=SESSIONS, trials=TRIALS, practice_trials=0)
    sessions = [make_session(study) for _ in range(SESSIONS)]
    handler, beside = WSGIHandler(), connection.copy()
    beside.ensure_connection()  # as the scheduler's: SQLite writes its whole log back when the last one closes
    plays = [{"slot": slot, "started_ms": 900, "heard_ms": 600, "is_whole": True, "remarks": []} for slot in "ab"]
    ms = _measured_by(process_time if connection.vendor == "sqlite" else perf_counter)
    answers, bare = [], []
    for session in sessions:
        hear(session)
        for position in range(1, TRIALS + 1):
            sent = payload(position, 1 + position % 10, is_late=True, plays=plays)
            address = f"/listen/{session.token}/answers"
            answers.append(ms(lambda address=address, sent=sent: _post(handler, address, sent)))
            told = {"session": session.pk, "answers": sent["answers"]}
            bare.append(ms(lambda told=told: _post(handler, "/bare", told)))
    beside.close()
    print(f"{connection.vendor}, {len(answers)} answers in {SESSIONS} sessions")
    ratio = median(answers) / median(bare)
    for name, ms in (("answer", answers), ("bare view", bare)):
        print(f"{name:10} median {median(ms):5.2f} ms   p95 {quantiles(ms, n=20)[-1]:5.2f} ms")
    print(
        f"ratio {ratio:.2f} (budget {BUDGET:g}); of p95 {quantiles(answers, n=20)[-1] / quantiles(bare, n=20)[-1]:.2f}"
    )
    return int(ratio > BUDGET)


def _measured_by(clock: Callable[[], float]) -> Callable[[Callable[[], None]], float]:
    def ms(work: Callable[[], None]) -> float:
        began = clock()
        work()
        return 1000 * (clock() - began)

    return ms


def _post(handler: Any, address: str, body: dict[str, Any]) -> None:
    """One request as a web server hands it over."""
    data = json.dumps(body).encode()
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": address,
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "8000",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": "127.0.0.1:8000",
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(data)),
        "wsgi.input": io.BytesIO(data),
        "wsgi.errors": sys.stderr,
        "wsgi.url_scheme": "http",
        "wsgi.version": (1, 0),
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    status = []
    response = handler(environ, lambda line, *_: status.append(line))
    said = b"".join(response)
    response.close()
    if status != ["200 OK"]:
        raise RuntimeError(f"{address}: {status} {said[:300]!r}")


if __name__ == "__main__":
    sys.exit(main())
