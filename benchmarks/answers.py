"""One answer of an evaluator beside a bare Django view that writes one row, and 300 evaluators at once.

The ratio is of processor time, by requests to the whole application in turns. Then 300 evaluators answer over HTTP to
the web server at once, 30 of them twice each time; the database is compared with what was acknowledged.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

from benchmarks._measuring import Figure, open_portal, report

BUDGET = 5
SESSIONS, TRIALS = 12, 52
EVALUATORS, TRIALS_OF_EACH = 300, 4
TWICE = 10  # every tenth evaluator sends each answer twice
URLS = "benchmarks.answers"


def __getattr__(name: str) -> Any:
    """Return the addresses of the portal and that of the bare view, which Django looks up here once it is set up."""
    if name != "urlpatterns":
        raise AttributeError(name)
    from django.urls import include, path
    from django.views.decorators.csrf import csrf_exempt

    return [path("bare", csrf_exempt(write_row)), path("", include("portal.config.urls"))]


def write_row(request: Any) -> Any:
    from django.http import JsonResponse

    from listening.app.models import SessionEvent

    body = json.loads(request.body)
    SessionEvent.objects.create(session_id=body["session"], kind="bare", data=body["answers"])
    return JsonResponse({"saved": True})


def main() -> int:
    with open_portal():
        return report(*measure_answers(), *measure_crowd())


def measure_answers() -> list[Figure]:
    """Return the ratio of the medians."""
    from django.db import connection
    from django.test import Client, override_settings

    from tests.listening.answering import hear, payload
    from tests.listening.factories import make_session, make_study

    study = make_study(evaluators=SESSIONS, trials=TRIALS, practice_trials=0)
    plays = [{"slot": slot, "started_ms": 900, "heard_ms": 600, "is_whole": True, "remarks": []} for slot in "ab"]
    client, answers, bare = Client(), [], []
    other = connection.copy()
    other.ensure_connection()  # SQLite writes its whole log back when the last connection closes
    with override_settings(ROOT_URLCONF=URLS, ALLOWED_HOSTS=["*"]):
        for session in [make_session(study) for _ in range(SESSIONS)]:
            hear(session)
            for position in range(1, TRIALS + 1):
                body = payload(position, 1 + position % 10, is_late=True, plays=plays)
                answers.append(time_post(client, f"/listen/{session.token}/answers", body))
                bare.append(time_post(client, "/bare", {"session": session.pk, "answers": body["answers"]}))
    other.close()
    return [
        Figure("An answer of an evaluator / a bare view that writes one row", median(answers) / median(bare), BUDGET)
    ]


def time_post(client: Any, address: str, body: dict[str, Any]) -> float:
    began = process_time()
    answer = client.post(address, json.dumps(body), content_type="application/json")
    seconds = process_time() - began
    assert answer.status_code == 200, answer.content[:300]
    return seconds


def measure_crowd() -> list[Figure]:
    """Return how many answers of 300 evaluators at once are lost, and how many are doubled."""
    from listening.app.models import Answer
    from tests.listening.answering import hear
    from tests.listening.factories import make_session, make_study
    from tests.portal.processes.programs import Portal
    from tests.portal.processes.uploading import WebServer

    study = make_study(evaluators=EVALUATORS, trials=TRIALS_OF_EACH, practice_trials=0)
    sessions = [make_session(study) for _ in range(EVALUATORS)]
    for session in sessions:
        hear(session)
    with TemporaryDirectory() as folder:
        portal = Portal(Path(folder))
        try:
            address = WebServer(portal).address
            with ThreadPoolExecutor(EVALUATORS) as pool:
                acknowledged = dict(
                    pair for pairs in pool.map(Crowd(address), enumerate(sessions)) for pair in pairs.items()
                )
        finally:
            portal.kill_all()
    rows = Answer.objects.filter(session__study=study).values_list(
        "session__token", "trial__position", "task", "rating"
    )
    stored = Counter(row[:3] for row in rows)
    ratings = {row[:3]: row[3] for row in rows}
    expected = EVALUATORS * TRIALS_OF_EACH * len(study.asked)
    lost = expected - sum(ratings.get(key) == rating for key, rating in acknowledged.items())
    doubled = sum(stored.values()) - len(stored)
    return [
        Figure(f"{EVALUATORS} evaluators at once, {expected:,} answers: lost or changed", lost, 0),
        Figure(f"{EVALUATORS} evaluators at once, {expected:,} answers: doubled", doubled, 0),
    ]


class Crowd:
    """Evaluators who answer over HTTP without a pause, each over a connection of their own."""

    def __init__(self, address: str) -> None:
        self.address = address

    def __call__(self, numbered: tuple[int, Any]) -> dict[tuple[str, int, str], int]:
        """Answer all trials of a session; return the ratings that were acknowledged."""
        import requests

        from tests.listening.answering import payload

        number, session = numbered
        acknowledged = {}
        with requests.Session() as browser:
            for position in range(1, TRIALS_OF_EACH + 1):
                body = payload(position, 1 + (number + position) % 10, is_late=True)
                for _ in range(2 if number % TWICE == 0 else 1):
                    while True:  # as a browser does, which sends an answer until it has a reply
                        try:
                            reply = browser.post(
                                f"{self.address}/listen/{session.token}/answers", json=body, timeout=60
                            )
                        except requests.RequestException:
                            continue
                        if reply.status_code < 500:
                            break
                    assert reply.status_code == 200, reply.text[:300]
                for task, rating in reply.json()["answers"].items():
                    acknowledged[session.token, position, task] = rating
        return acknowledged


if __name__ == "__main__":
    os.environ.setdefault("PORTAL_LOG_LEVEL", "WARNING")
    sys.exit(main())
