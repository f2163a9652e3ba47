"""Sessions with answers, as the engine leaves them, for tests of what organizers see."""

from datetime import timedelta
from itertools import count

from django.utils import timezone

from listening.app.models import Answer, Play, Session
from tests.listening.factories import make_session, make_stimulus, make_study

_number = count(1)


def by_place(*ratings):
    """Ratings that come again and again: `by_place(1, 9)` alternates."""
    return lambda place, _task: ratings[place % len(ratings)]


def varied(place, task):
    """What an attentive listener might give: all over the scale, without a pattern."""
    return 1 + (place * place + 3 * place + len(task)) % 10


def answer_trials(
    session, rate=varied, *, trials=None, spent_ms=9000, apart_s=10.0, begun_at=None, plays=True, **fields
):
    """Play and answer the first `trials` (default all) of its block; `rate(place, task)` says what. Returns it."""
    begun_at = begun_at or timezone.now() - timedelta(minutes=30)
    Session.objects.filter(pk=session.pk).update(trials_started_at=begun_at, last_seen_at=timezone.now())
    chosen = list(session.block.trials.order_by("position"))[:trials]
    Answer.objects.bulk_create(
        Answer(
            session=session,
            trial=trial,
            task=task,
            rating=rate(place, task),
            client_ms=spent_ms,
            received_at=begun_at + timedelta(seconds=apart_s * (place + 1)),
            **fields,
        )
        for place, trial in enumerate(chosen)
        for task in session.study.asked_keys
    )
    if plays:
        play_trials(session, chosen)
    session.refresh_from_db()
    return session


def play_trials(session, trials):
    """Note that every recording of these trials was played to its end, as the page does."""
    Play.objects.bulk_create(
        Play(session=session, trial=trial, slot=slot, started_ms=100, heard_ms=60_000, is_whole=True)
        for trial in trials
        for slot in trial.presentation.samples.values_list("slot", flat=True)
    )


def finish(session):
    """End the session as the engine does when its last answer is in."""
    from django.db import transaction

    from listening.app.sessions.block_leases import end_session

    with transaction.atomic():
        end_session(session, Session.State.FINISHED, timezone.now())
    session.refresh_from_db()
    return session


def make_finished_session(study, rate=varied, **fields):
    """A session that has answered its whole block."""
    return finish(answer_trials(make_session(study), rate, **fields))


def add_gold(study, *, expected):
    """A control trial at the end of every block."""
    source = study.presentations.first()
    item = study.presentations.create(
        key=f"gold-{next(_number)}", condition=source.condition, purpose="gold", expected=expected
    )
    for sample in source.samples.all():
        item.samples.create(slot=sample.slot, stimulus=sample.stimulus)
    for block in study.blocks.all():
        block.trials.create(position=block.trials.count() + 1, presentation=item)
    return item


def add_play(session, *notes, position=1, whole=True):
    trial = session.block.trials.get(position=position)
    heard = {"started_ms": 100, "heard_ms": 600, "is_whole": whole}
    return Play.objects.create(session=session, trial=trial, slot="a", remarks=list(notes), **heard)


__all__ = [
    "add_gold",
    "add_play",
    "answer_trials",
    "by_place",
    "finish",
    "make_finished_session",
    "make_session",
    "make_stimulus",
    "make_study",
    "varied",
]
