"""The way of a session from consent to its trials: which steps a study has, and what each one changes.

Every function is one transaction on the locked session and does nothing, when its step is over already: a form that
is sent twice, or from an old page, changes nothing. The order of steps is `ORDER`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from listening.models import Session, Study
from listening.people import screening
from listening.studies import plans
from listening.studies.plans import Question, Screening
from listening.trials import leases
from listening.trials.sessions import end_session, note, session_for

Step = Session.Step
State = Session.State
ORDER = (Step.CONSENT, Step.QUESTIONS, Step.SOUND, Step.HEADPHONES, Step.ROLE_PLAY, Step.TRIALS)
DEVICE_FIELDS = ("context_state", "sample_rate", "screen")


class NoPlaceError(Exception):
    """All places are taken just now, or the study takes nobody."""


def screening_of(study: Study) -> Screening:
    return plans.parse_screening(study.screening)


def questions_of(study: Study) -> tuple[Question, ...]:
    return plans.parse_questionnaire(study.questionnaire, screening=screening_of(study))


def steps_of(study: Study) -> tuple[Session.Step, ...]:
    """The steps that this study has, in their order; one in which there is nothing to do is none of them."""
    tests = screening_of(study)
    left_out = {
        Step.QUESTIONS: not questions_of(study),
        Step.SOUND: not tests.sound,
        Step.HEADPHONES: not tests.headphone_tests,
    }
    return tuple(step for step in ORDER if not left_out.get(step))


@transaction.atomic
def give_consent(token: str, now: datetime) -> Session:
    """Consent is given, and with it comes a block: from here on audio is served.

    Raises:
        NoPlaceError: there is no block to be had; nothing is kept.
    """
    study = Study.objects.select_for_update(no_key=True, of=("self",)).get(sessions__token=token)
    session = session_for(token, lock=True)
    if not _stands_at(session, Step.CONSENT):
        return session
    if study.state != Study.State.OPEN and not session.is_preview:
        raise NoPlaceError
    if leases.lease_block(session, now) is None:
        raise NoPlaceError
    session.consented_at = now
    session.save(update_fields=["consented_at"])
    _go_on(session, now)
    return session


@transaction.atomic
def answer_questions(token: str, answers: Mapping[str, Any], now: datetime) -> Session:
    """Keep the questionnaire; somebody of another native language than the study is for is thanked and let go."""
    session = session_for(token, lock=True)
    if not _stands_at(session, Step.QUESTIONS):
        return session
    tests = screening_of(session.study)
    session.questionnaire = dict(answers)
    session.save(update_fields=["questionnaire"])
    native = str(answers.get(plans.NATIVE_LANGUAGE, ""))
    if tests.native_languages and not screening.check_native_language(session, native, tests):
        end_session(session, State.SCREENED_OUT, now)
    else:
        _go_on(session, now)
    return session


@transaction.atomic
def answer_sound_test(
    token: str, attempt: int, given: Sequence[int], told: Mapping[str, str], now: datetime
) -> Session:
    """Score what was counted; who heard nothing in all attempts cannot take part."""
    session = session_for(token, lock=True)
    if not _stands_at(session, Step.SOUND):
        return session
    _keep_device(session, told)
    screening.answer_test(session, screening.Kind.SOUND, attempt, given)
    found = screening.verdict(session, screening.Kind.SOUND, screening_of(session.study))
    if found == screening.FAILED:
        end_session(session, State.SCREENED_OUT, now)
    elif found == screening.PASSED:
        _go_on(session, now)
    return session


@transaction.atomic
def answer_headphone_check(token: str, kind: str, attempt: int, given: Sequence[int], now: datetime) -> Session:
    """Score a headphone check; a gate ends the session after the last attempt, a flag only keeps the score."""
    session = session_for(token, lock=True)
    tests = screening_of(session.study)
    if not _stands_at(session, Step.HEADPHONES) or kind != screening.next_headphone_test(session, tests):
        return session
    screening.answer_test(session, kind, attempt, given)
    if screening.verdict(session, kind, tests) == screening.FAILED and tests.headphones_gate == "gate":
        end_session(session, State.SCREENED_OUT, now)
    elif screening.next_headphone_test(session, tests) is None:
        _go_on(session, now)
    return session


@transaction.atomic
def begin_trials(token: str, now: datetime) -> Session:
    """The role play was read: time runs from here."""
    session = session_for(token, lock=True)
    if _stands_at(session, Step.ROLE_PLAY):
        _go_on(session, now)
    return session


@transaction.atomic
def change_language(token: str, language: str) -> Session:
    """Go on in another language of the study; nothing else changes."""
    session = session_for(token, lock=True)
    if language in session.study.languages and language != session.language:
        note(session, "language", was=session.language, now=language)
        session.language = language
        session.save(update_fields=["language"])
    return session


def _stands_at(session: Session, step: Session.Step) -> bool:
    return session.state == State.ACTIVE and session.step == step


def _go_on(session: Session, now: datetime) -> None:
    steps = steps_of(session.study)
    later = [step for step in steps if ORDER.index(step) > ORDER.index(Step(session.step))]
    session.step, session.last_seen_at = later[0], now
    if session.step == Step.TRIALS:
        session.trials_started_at = session.heard_until = now
    session.save(update_fields=["step", "last_seen_at", "trials_started_at", "heard_until"])
    leases.extend_lease(session, now)


def _keep_device(session: Session, told: Mapping[str, str]) -> None:
    read = {name: "".join(filter(str.isprintable, str(told.get(name, ""))))[:60] for name in DEVICE_FIELDS}
    found = {name: value for name, value in read.items() if value}
    if found:
        session.device = session.device | found
        session.save(update_fields=["device"])
        note(session, "sound-unlocked", **found)
