"""Sending the sound of trials, and knowing what was really sent.

A session may have the sound of what it has answered, of the trial that comes next and of the two after it, once it
stands in its trials. The time gate rests on what is noted here: a sample counts as sent when every byte of it went out
in answers to this session, in one piece or several, and nothing counts that the browser broke off or never asked for.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import IO

from django.core.files.storage import default_storage
from django.db import transaction
from django.http import Http404

from common.errors import Refused
from listening.app.models import PresentationSample, Serve, Session
from listening.app.sessions import selectors
from listening.app.sessions.clip_urls import can_be_name, is_clip_name
from portal.core.clock import read_clock

CHUNK_BYTES = 16 << 10  # small, so that little of what a broken connection never carried counts as sent
MOST_REQUESTS = 30_000
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Clip:
    """A file that may be sent: `key` in the store, `size` in bytes, `seconds` as long as it lasts."""

    session: int
    trial: int
    slot: str
    key: str
    size: int
    seconds: float


def clip_for(token: str, name: str) -> Clip:
    """Return the sound behind an address.

    Raises:
        Refused: 404 no such session or file, 403 not of this session or not yet, 410 the session is over, 503 the
            store of files cannot be reached.
    """
    try:
        session = selectors.session_for(token)
    except Http404:
        raise _nothing() from None
    if session.state != Session.State.ACTIVE:
        raise Refused(410, "This session is over.")
    if not can_be_name(name):
        raise _nothing()
    block = selectors.load_block(session)
    planned, slot = _planned(session, block, name)
    if not _is_allowed(session, block, planned):
        raise _refused()
    stimulus = PresentationSample.objects.filter(presentation=planned.trial.presentation_id, slot=slot)
    recording, key, size = stimulus.values_list("stimulus", "stimulus__file", "stimulus__bytes").get()
    if not key or not _is_stored(key):
        log.error("The file of recording %s is missing: %s.", recording, key or "none was made")
        raise _nothing()
    seconds = next(sample.seconds for sample in planned.samples if sample.slot == slot)
    return Clip(session.pk, planned.trial.pk, slot, key, size, seconds)


def _is_stored(key: str) -> bool:
    try:
        default_storage.size(key)
    except FileNotFoundError:
        return False
    except Exception:
        log.exception("The store of files cannot be reached.")
        raise Refused(503, "The recordings cannot be read just now.") from None
    return True


def _planned(session: Session, block: selectors.PlannedBlock, name: str) -> tuple[selectors.PlannedTrial, str]:
    for planned in block.trials.values():
        for sample in planned.samples:
            if is_clip_name(name, session, planned.trial, sample.slot):
                return planned, sample.slot
    raise _refused()


def _is_allowed(session: Session, block: selectors.PlannedBlock, planned: selectors.PlannedTrial) -> bool:
    if session.consented_at is None or session.step != Session.Step.TRIALS:
        return False
    progress = selectors.measure_progress(block, selectors.answered_by(session), session.skips)
    return planned in progress.ahead or planned not in progress.left


def _nothing() -> Refused:
    return Refused(404, "There is no sound here.")


def _refused() -> Refused:
    return Refused(403, "This sound is not for this session now.")


# Sending ------------------------------------------------------------------------------------------


def send(clip: Clip, start: int, stop: int) -> Iterator[bytes]:
    """Send these bytes of the clip, in chunks, noting what was sent.

    The last byte follows alone, once the others are noted: a note that fails cuts the file, and the browser asks again,
    rather than waiting with a whole file at a gate that knows nothing of it.
    """
    begun_at, sent, is_whole = read_clock(), start, False
    with default_storage.open(clip.key) as file:
        file.seek(start)
        try:
            while sent < stop - 1:
                chunk = _read(file, min(CHUNK_BYTES, stop - 1 - sent))
                yield chunk
                sent += len(chunk)
            last, is_whole = _read(file, 1), True
            note_sent(clip, start, stop, begun_at)
            log.info("slot %s of trial %s sent to session %s", clip.slot, clip.trial, clip.session)
            yield last
        finally:
            if not is_whole and sent > start:
                _note_part(clip, start, sent, begun_at)


def _read(file: IO[bytes], count: int) -> bytes:
    chunk = file.read(count)
    if not chunk:
        raise OSError("a stored file is shorter than it was when it was made")
    return chunk


def _note_part(clip: Clip, start: int, stop: int, at: datetime) -> None:
    """Note what went out before the connection broke; without the database it is as if nothing had."""
    try:
        note_sent(clip, start, stop, at)
    except Exception:
        log.warning("Not noted what was sent of slot %s of trial %s.", clip.slot, clip.trial, exc_info=True)


@transaction.atomic
def note_sent(clip: Clip, start: int, stop: int, at: datetime) -> None:
    """Note that these bytes went out, the first of them at that time.

    A client that gets the part behind a byte at some time cannot have heard the end before what comes behind that byte
    has lasted. `first_at` is the latest beginning of a playing that this allows; so asking for a byte early gains
    nothing.
    """
    where = {"session_id": clip.session, "trial_id": clip.trial, "slot": clip.slot}
    Serve.objects.get_or_create(**where, defaults={"first_at": at, "requests": 0})
    serve = Serve.objects.select_for_update().get(**where)
    serve.requests = min(MOST_REQUESTS, serve.requests + 1)
    first_new = first_missing(serve.ranges, start, stop)
    if serve.complete_at is None and first_new is not None:
        begun = at - timedelta(seconds=clip.seconds * first_new / clip.size)
        serve.first_at = max(serve.first_at, begun) if serve.ranges else begun
        serve.ranges = merged([*serve.ranges, [start, stop]])
        if serve.ranges == [[0, clip.size]]:
            serve.complete_at, serve.ranges = read_clock(), []
    serve.save(update_fields=["requests", "first_at", "ranges", "complete_at"])


def merged(ranges: Sequence[Sequence[int]]) -> list[list[int]]:
    """Merge half-open ranges into few and sorted ones."""
    joined: list[list[int]] = []
    for start, stop in sorted(map(tuple, ranges)):
        if joined and start <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], stop)
        else:
            joined.append([start, stop])
    return joined


def first_missing(ranges: Sequence[Sequence[int]], start: int, stop: int) -> int | None:
    """Return the first of these places that lies in none of the ranges, which are sorted; None if there is none."""
    for first, behind in ranges:
        if first <= start < behind:
            start = behind
    return start if start < stop else None
