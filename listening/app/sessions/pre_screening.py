"""Who is turned away: the checks before the trials (sound, headphones, bandwidth, environment, background).

`CHECKS` holds what is to be heard; a further one is a row there, its choices in `forms` and its words in the template
of its step. The server makes the checks, counts them and scores them.

An attempt is a `ScreeningResult` row whose `secret` (seed and right answers) no browser gets; opening the page again
continues the same attempt. The sounds are made again at each request from the secret, at addresses that tell nothing,
in files whose size does not depend on the answer. Sources: Milne et al. 2021 (Huggins pitch, six of six), Woods et al.
2017 (opposite phase, five of six), ITU-T P.808 (bandwidth and environment; its toolkit takes two pairs of four as
enough for the environment, here three, which guesses reach in a third of cases and not in two thirds). Each fails
honest people too, so a study chooses between turning away and keeping the score.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from django.db import transaction
from django.http import Http404
from django.utils.crypto import constant_time_compare

from listening.app.models import ScreeningResult, Session
from listening.app.studies.settings import HEARING, HEARS_WELL, NATIVE_LANGUAGE, Screening
from listening.stimuli import sound_checks
from listening.stimuli.making import RATE_HZ
from portal.core.keys import keyed_hashes

Kind, Step = ScreeningResult.Kind, Session.Step
SOUND_ATTEMPTS = 3
# The sound test: so many groups of tones, each of so many; all have to be counted right.
GROUPS = 2
FEWEST_TONES, MOST_TONES = 2, 5


@dataclass(frozen=True)
class ScreeningCheck:
    """What is to be heard before the trials.

    Attributes:
        draw: gives the right answer of each round.
        needed: so many right answers pass.
        make: gives a sound, of the right answers, the round from 0, a generator, and the rate in Hz.
        rate_hz: of the sounds at most; else as the stimuli of the study.
        has_one_sound: for all rounds together.
    """

    draw: Callable[[], list[int]]
    needed: int
    make: Callable[[Sequence[int], int, np.random.Generator, int], sound_checks.Sound]
    rate_hz: int = RATE_HZ
    has_one_sound: bool = False

    @property
    def rounds(self) -> int:
        return len(self.draw())

    @property
    def sounds(self) -> range:
        return range(1 if self.has_one_sound else self.rounds)


def _drawn(rounds: int, lowest: int, highest: int) -> Callable[[], list[int]]:
    return lambda: [lowest + secrets.randbelow(highest - lowest + 1) for _ in range(rounds)]


def _shuffled(*answers: int) -> Callable[[], list[int]]:
    return lambda: secrets.SystemRandom().sample(answers, len(answers))


CHECKS: dict[str, ScreeningCheck] = {
    Kind.SOUND: ScreeningCheck(
        _drawn(GROUPS, FEWEST_TONES, MOST_TONES),
        GROUPS,
        lambda right, *_: sound_checks.counting_tones(right),
        has_one_sound=True,
    ),
    Kind.HUGGINS: ScreeningCheck(
        _drawn(6, 1, 3), 6, lambda right, place, rng, _: sound_checks.huggins_round(right[place], rng)
    ),
    Kind.WOODS: ScreeningCheck(
        _drawn(6, 1, 3), 5, lambda right, place, rng, _: sound_checks.woods_round(right[place], rng)
    ),
    Kind.BANDWIDTH: ScreeningCheck(
        _shuffled(1, 1, 2, 2, 2),
        5,
        lambda right, place, rng, hz: sound_checks.bandwidth_round(right[place], right[:place].count(2), rng, hz),
        rate_hz=48_000,
    ),
    Kind.ENVIRONMENT: ScreeningCheck(
        _drawn(4, 1, 2), 3, lambda right, place, rng, _: sound_checks.environment_round(right[place], rng)
    ),
}


def attempts_at(kind: str, screening: Screening) -> int:
    """Return how often this check may be taken."""
    return SOUND_ATTEMPTS if kind == Kind.SOUND else screening.headphones_attempts


def list_checks(session: Session, screening: Screening) -> tuple[str, ...]:
    """Return the checks of the step at which the session stands, in their order."""
    return {Step.SOUND: (Kind.SOUND,), Step.HEADPHONES: screening.checks}.get(Step(session.step), ())


def next_check(session: Session, screening: Screening) -> str | None:
    """Return the first check of the session's step that is neither passed nor used up."""
    return next((kind for kind in list_checks(session, screening) if attempts_left(session, kind, screening)), None)


def attempts_left(session: Session, kind: str, screening: Screening) -> int | None:
    """Return how often a check may still be taken; None once it is passed."""
    results = list(session.screening_results.filter(kind=kind).values_list("is_passed", flat=True))
    return None if True in results else max(0, attempts_at(kind, screening) - results.count(False))


def open_test(session: Session, kind: str) -> ScreeningResult:
    """Return the attempt that is to be answered; the first one, or the next one after a failure, is made here."""
    check, row = CHECKS[kind], _open_row(session, kind)
    if row is None:
        attempt = session.screening_results.filter(kind=kind).count() + 1
        made = {"secret": {"seed": secrets.randbelow(2**31), "right": check.draw()}, "of": check.rounds}
        row, _is_new = session.screening_results.get_or_create(kind=kind, attempt=attempt, defaults=made)
    return row


def answer_test(session: Session, kind: str, attempt: int, given: Sequence[int]) -> ScreeningResult | None:
    """Score the open attempt; None where it is another one, because a form was sent twice or from an old page."""
    row = _open_row(session, kind)
    if row is None or row.attempt != attempt:
        return None
    right = row.secret["right"]
    row.given = [int(one) for one in given][: len(right)]
    row.score = sum(one == other for one, other in zip(row.given, right, strict=False))
    row.is_passed = row.score >= CHECKS[kind].needed
    row.save(update_fields=["given", "score", "is_passed"])
    return row


def check_background(session: Session, screening: Screening) -> bool:
    """Return whether the study is for people who answered its questions like this; kept with the session."""
    answers = session.questionnaire
    native, hearing = str(answers.get(NATIVE_LANGUAGE, "")), str(answers.get(HEARING, ""))
    wanted = {one.partition("-")[0] for one in screening.native_languages}
    found = {Kind.LANGUAGE: (native, native.partition("-")[0] in wanted)} if wanted else {}
    found |= {Kind.HEARING: (hearing, hearing == HEARS_WELL)} if screening.normal_hearing else {}
    for kind, (given, is_passed) in found.items():
        told = {"given": [given], "score": int(is_passed), "of": 1, "is_passed": is_passed}
        session.screening_results.update_or_create(kind=kind, attempt=1, defaults=told)
    return all(is_passed for _, is_passed in found.values())


# Sounds -------------------------------------------------------------------------------------------


def list_unheard(session: Session, kind: str, attempt: str) -> list[int]:
    """List the answers of an attempt, from 1, whose sound was never fetched; none of an attempt that is over."""
    row = _open_row(session, kind)
    if row is None or str(row.attempt) != attempt:
        return []
    sent, check = row.secret.get("sent", ()), CHECKS[kind]
    if check.has_one_sound:
        return [] if sent else list(range(1, check.rounds + 1))
    return [place + 1 for place in check.sounds if place not in sent]


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
    for row in session.screening_results.select_for_update().filter(is_passed=None):
        for place in CHECKS[row.kind].sounds:
            if any(constant_time_compare(one, name) for one in sound_names(session, row, place)):
                if place not in (sent := row.secret.setdefault("sent", [])):
                    sent.append(place)
                    row.save(update_fields=["secret"])
                check, rng = CHECKS[row.kind], np.random.default_rng([row.secret["seed"], place])
                rate_hz = min(check.rate_hz, session.study.rate_hz)
                return sound_checks.write_sound(check.make(row.secret["right"], place, rng, rate_hz), rate_hz)
    raise Http404


def _open_row(session: Session, kind: str) -> ScreeningResult | None:
    return session.screening_results.filter(kind=kind, is_passed=None).order_by("attempt").first()
