"""Helps tests to answer as an evaluator's browser does, without waiting for real sound."""

import json
from datetime import timedelta

from django.utils import timezone

from listening.app.models import Session
from listening.app.sessions import selectors

TAB = "first-tab"
LONG_AGO = timedelta(hours=1)


def without_cache(session):
    """Return a session that was brought back, of which this process knows nothing yet."""
    selectors._cached_blocks.clear()
    return session


def hear(session, *positions, seconds_ago=None, whole=True):
    """Note that the clips of these trials, or of all, were sent some time ago, and that nothing was heard since."""
    first_at = timezone.now() - (LONG_AGO if seconds_ago is None else timedelta(seconds=seconds_ago))
    trials = session.block.trials.filter(position__in=positions) if positions else session.block.trials.all()
    for trial in trials:
        for slot in trial.presentation.samples.values_list("slot", flat=True):
            defaults = {"first_at": first_at, "complete_at": first_at if whole else None}
            session.serves.update_or_create(trial=trial, slot=slot, defaults=defaults)
    Session.objects.filter(pk=session.pk).update(heard_until=first_at)


def lengthen(session, seconds=30):
    """Let the session's clips last so long that no slow machine matters."""
    session.study.stimulus_files.update(duration_s=seconds)


def payload(position=1, rating=7, *, tab=TAB, tasks=("verifiability", "naturalness", "intelligibility"), **more):
    return {"tab": tab, "position": position, "answers": dict.fromkeys(tasks, rating), "client_ms": 9000} | more


def post(client, session, what, body):
    """The status and the JSON of the reply to a request of the trial page; `body` as a dictionary or as it stands."""
    data = body if isinstance(body, str | bytes) else json.dumps(body)
    reply = client.post(f"/listen/{session.token}/{what}", data, content_type="application/json")
    return reply.status_code, reply.json()


def answer(client, session, position=1, rating=7, **more):
    return post(client, session, "answers", payload(position, rating, **more))


def answer_all(client, session, rating=7, **more):
    """Answer everything that is left in order, as if all of it had been heard long ago; the last reply."""
    hear(session)
    position, reply = client.get(f"/listen/{session.token}/state").json()["next"], None
    while position is not None:
        status, reply = answer(client, session, position, rating, is_late=True, **more)
        assert status == 200, reply
        position = reply["next"]
    return reply


def stored(session):
    """What is stored of it: position, task and rating."""
    return list(session.answers.order_by("pk").values_list("trial__position", "task", "rating"))
