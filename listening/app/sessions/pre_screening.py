"""Who is turned away: the tests before the trials (sound, headphones, native language).

The server makes the tests, counts them and scores them.

An attempt is a `ScreeningResult` row whose `secret` (seed and right answers) no browser gets; opening the page again
continues the same attempt. The sounds are made again at each request from the secret, at addresses that tell nothing,
in files whose size does not depend on the answer. Sources of the headphone checks: Milne et al. 2021 (Huggins pitch,
six of six), Woods et al. 2017 (opposite phase, five of six). Either fails honest people too, so a study chooses
between turning away and keeping the score.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import transaction
from django.http import Http404
from django.utils.crypto import constant_time_compare

from listening.app.models import ScreeningResult, Session
from listening.app.studies.settings import Screening
from listening.stimuli import sound_checks
from portal.core.keys import keyed_hashes

Kind = ScreeningResult.Kind
SOUND_ATTEMPTS = 3
# The sound test: so many groups of tones, each of so many; all have to be counted right.
GROUPS = 2
FEWEST_TONES, MOST_TONES = 2, 5
ROUNDS = 6
INTERVALS = 3
NEEDED = {Kind.SOUND: GROUPS, Kind.HUGGINS: 6, Kind.WOODS: 5, Kind.LANGUAGE: 1}
PASSED, FAILED, AGAIN, OPEN = "passed", "failed", "again", "open"


@dataclass(frozen=True)
class Test:
    """An attempt as its page shows it: the addresses' names of its sounds, and how often it may still be taken."""

    kind: str
    attempt: int
    attempts: int
    sounds: tuple[str, ...]


def attempts_at(kind: str, screening: Screening) -> int:
    """Return how often this test may be taken."""
    return SOUND_ATTEMPTS if kind == Kind.SOUND else screening.headphones_attempts


def open_test(session: Session, kind: str, screening: Screening) -> Test:
    """Return the attempt that is to be answered; the first one, or the next one after a failure, is made here."""
    row = _open_row(session, kind)
    if row is None:
        attempt = session.screening_results.filter(kind=kind).count() + 1
        made = {"secret": _new_secret(kind), "of": GROUPS if kind == Kind.SOUND else ROUNDS}
        row, _is_new = session.screening_results.get_or_create(kind=kind, attempt=attempt, defaults=made)
    sounds = tuple(sound_names(session, row, place)[0] for place in range(_sounds_of(kind)))
    return Test(kind, row.attempt, attempts_at(kind, screening), sounds)


def verdict(session: Session, kind: str, screening: Screening) -> str:
    """``passed``, ``failed`` once all attempts are used up, ``again`` after a failure, ``open`` before."""
    rows = list(session.screening_results.filter(kind=kind))
    if any(row.is_passed for row in rows):
        return PASSED
    failures = sum(row.is_passed is False for row in rows)
    if failures >= attempts_at(kind, screening):
        return FAILED
    return AGAIN if failures else OPEN


def next_headphone_test(session: Session, screening: Screening) -> str | None:
    """Return the first headphone check that is neither passed nor used up."""
    undecided = (kind for kind in screening.headphone_tests if verdict(session, kind, screening) in {OPEN, AGAIN})
    return next(undecided, None)


def answer_test(session: Session, kind: str, attempt: int, given: Sequence[int]) -> ScreeningResult | None:
    """Score the open attempt; None where it is another one, because a form was sent twice or from an old page."""
    row = _open_row(session, kind)
    if row is None or row.attempt != attempt:
        return None
    right = row.secret["right"]
    row.given = [int(one) for one in given][: len(right)]
    row.score = sum(one == other for one, other in zip(row.given, right, strict=False))
    row.is_passed = row.score >= NEEDED[Kind(kind)]
    row.save(update_fields=["given", "score", "is_passed"])
    return row


def check_native_language(session: Session, given: str, screening: Screening) -> bool:
    """Return whether the study is for people of this native language; kept with the session."""
    is_passed = given.partition("-")[0] in {one.partition("-")[0] for one in screening.native_languages}
    session.screening_results.update_or_create(
        kind=Kind.LANGUAGE,
        attempt=1,
        defaults={"given": [given], "score": int(is_passed), "of": 1, "is_passed": is_passed},
    )
    return is_passed


# Sounds -------------------------------------------------------------------------------------------


def list_unheard(session: Session, kind: str, attempt: str) -> list[int]:
    """The answers of an attempt, counted from 1, whose sound was never fetched; none of an attempt that is over."""
    row = _open_row(session, kind)
    if row is None or str(row.attempt) != attempt:
        return []
    sent = row.secret.get("sent", ())
    if kind == Kind.SOUND:
        return [] if sent else list(range(1, GROUPS + 1))
    return [place + 1 for place in range(ROUNDS) if place not in sent]


def sound_names(session: Session, row: ScreeningResult, place: int) -> list[str]:
    """Return what the last part of a sound's address may be, first by the secret key, then by former ones.

    It is opaque, and another one in every session and attempt.
    """
    value = f"{session.token}:{row.kind}:{row.attempt}:{place}"
    return [mark.hex()[:32] for mark in keyed_hashes("listening.people.screening", value)]


@transaction.atomic
def make_sound(session: Session, name: str) -> bytes:
    """Return the file of a sound of the attempt that is open, which is noted as sent.

    Raises:
        Http404: any other sound, before consent, and after the end.
    """
    if session.consented_at is None or session.state != Session.State.ACTIVE:
        raise Http404
    for row in session.screening_results.select_for_update().filter(is_passed=None).exclude(kind=Kind.LANGUAGE):
        for place in range(_sounds_of(row.kind)):
            if any(constant_time_compare(one, name) for one in sound_names(session, row, place)):
                if place not in (sent := row.secret.setdefault("sent", [])):
                    sent.append(place)
                    row.save(update_fields=["secret"])
                return _render_sound(row, place)
    raise Http404


def _render_sound(row: ScreeningResult, place: int) -> bytes:
    rng = np.random.default_rng([row.secret["seed"], place])
    if row.kind == Kind.SOUND:
        return sound_checks.write_sound(sound_checks.counting_tones(row.secret["right"]))
    make = sound_checks.huggins_round if row.kind == Kind.HUGGINS else sound_checks.woods_round
    return sound_checks.write_sound(make(row.secret["right"][place], rng))


# Attempts -----------------------------------------------------------------------------------------


def _open_row(session: Session, kind: str) -> ScreeningResult | None:
    return session.screening_results.filter(kind=kind, is_passed=None).order_by("attempt").first()


def _new_secret(kind: str) -> dict[str, Any]:
    if kind == Kind.SOUND:
        right = [FEWEST_TONES + secrets.randbelow(MOST_TONES - FEWEST_TONES + 1) for _ in range(GROUPS)]
    else:
        right = [1 + secrets.randbelow(INTERVALS) for _ in range(ROUNDS)]
    return {"seed": secrets.randbelow(2**31), "right": right}


def _sounds_of(kind: str) -> int:
    """Return how many files a test has: the sound test plays one, a headphone check one for each round."""
    return 1 if kind == Kind.SOUND else ROUNDS
