"""From the address that a person opened to their trials: joining a study, its steps, and what each one changes.

One person has one session in a study, however often they come. Nothing here needs a cookie: the session's own address
is the credential, and a platform's frame may block the rest. Each function of a step is one transaction on the locked
session and does nothing, when its step is over already: what is sent twice, or from an old page, changes nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _

from listening.app.models import Participant, Session, Study
from listening.app.sessions import platforms, screening
from listening.app.sessions.assignment import assign_block, end_session, extend_lease, note
from listening.app.sessions.platforms import Arrival, ArrivalError, person_key
from listening.app.sessions.selectors import STEPS, list_steps, read_screening, session_for
from listening.app.studies.selectors import ShownText, shown_text
from listening.app.studies.settings import NATIVE_LANGUAGE, PlatformPlan

Step = Session.Step
State = Session.State
DEVICE_FIELDS = ("context_state", "sample_rate", "screen")
LONGEST_AGENT = 300


class NoPlaceError(Exception):
    """All places are taken just now, or the study takes nobody."""


class NotOpenError(Exception):
    """Nobody can begin just now; the message says so in the language of the page."""


def study_of_link(key: str) -> Study:
    """The study of an address that evaluators were given; one that was never launched is not found."""
    return get_object_or_404(Study, link_key=key, launched_at__isnull=False)


def join(study: Study, plan: PlatformPlan, arrival: Arrival, *, language: str, agent: str, now: datetime) -> Session:
    """The session of the person who came; a new one if they have none. Ten calls at once give one session.

    Raises:
        NotOpenError: they have none, and the study takes nobody just now.
        ArrivalError: the platform says that there is no such person at work on the study.
    """
    if arrival.is_preview:
        raise ValueError("Who only looks gets no session.")
    known = find_session(study, arrival)
    if known is None:
        _check_open(study)
    proof = "" if known is not None and _is_settled(known, arrival) else _proof(plan, arrival)
    with transaction.atomic():
        session = _join(study, arrival, language=language, agent=agent)
        _remember(session, arrival, proof)
        session.last_seen_at = now
        session.save(update_fields=["last_seen_at", "platform_data"])
    return session


@transaction.atomic
def start_again(session: Session) -> Session:
    """A new session for somebody whose block went to another; what they answered before stays as it is.

    Raises:
        NotOpenError: the study takes nobody just now, or this session did not end that way.
    """
    participant = Participant.objects.select_for_update(no_key=True).get(pk=session.participant_id)
    newest = participant.sessions.filter(is_preview=False).order_by("-pk").first()
    if newest is not None and newest.state == Session.State.ACTIVE:
        return newest
    if newest is None or newest.state != Session.State.EXPIRED:
        raise NotOpenError(_("You have already taken part in this study."))
    _check_open(session.study)
    data = newest.platform_data.get("next", newest.platform_data)
    return _begin(participant, language=session.language, device=session.device, data=data)


def find_session(study: Study, arrival: Arrival) -> Session | None:
    """The newest session of the person who came; None for whoever is new or names nobody."""
    if not arrival.person:
        return None
    found = Session.objects.filter(participant__study=study, participant__person_key=person_key(study, arrival.person))
    return found.filter(is_preview=False).order_by("-pk").first()


def _check_open(study: Study) -> None:
    if study.state == Study.State.CLOSED:
        raise NotOpenError(_("This study has ended. Thank you for your interest."))
    if study.state != Study.State.OPEN:
        raise NotOpenError(_("This study is paused just now. Please try again later with the same link."))


def _join(study: Study, arrival: Arrival, *, language: str, agent: str) -> Session:
    key = person_key(study, arrival.person) if arrival.person else secrets.token_hex(32)
    participant, _is_new = study.participants.get_or_create(person_key=key, defaults={"platform_id": arrival.person})
    # Whoever comes second waits here, and then sees the session of the first.
    participant = Participant.objects.select_for_update(no_key=True).get(pk=participant.pk)
    newest = participant.sessions.filter(is_preview=False).order_by("-pk").first()
    if newest is not None:
        return newest
    return _begin(participant, language=language, device={"agent": agent[:LONGEST_AGENT]}, data={})


def _begin(participant: Participant, *, language: str, device: dict[str, object], data: dict[str, str]) -> Session:
    study = participant.study
    return study.sessions.create(
        participant=participant, language=language, device=device, platform_data=data, is_simulated=study.is_simulated
    )


def _remember(session: Session, arrival: Arrival, proof: str) -> None:
    """Keep what the platform told; a session that has ended keeps the assignment under which it was done.

    One that lost its block keeps a newer assignment beside it, for the session that may follow.
    """
    told = {**arrival.data, **({"proof": proof} if proof else {})}
    is_other = arrival.data.get("session") != session.platform_data.get("session")
    if session.state == Session.State.ACTIVE:
        if session.platform_data and is_other:
            note(session, "platform-session-changed")
        session.platform_data = session.platform_data | told
    elif session.state == Session.State.EXPIRED and is_other:
        session.platform_data = session.platform_data | {"next": told}


def _is_settled(known: Session, arrival: Arrival) -> bool:
    """Whether there is nothing to ask: the submission was confirmed before, or is over and only its end is shown.

    Under another submission somebody else may use the name of this person.
    """
    is_same = arrival.data.get("session", "") == known.platform_data.get("session", "")
    is_confirmed = known.platform_data.get("proof") == platforms.CONFIRMED
    return is_same and (is_confirmed or known.state != Session.State.ACTIVE)


def _proof(plan: PlatformPlan, arrival: Arrival) -> str:
    """What the platform says about this submission, asked outside of any transaction; empty where it is not asked."""
    if not plan.confirm_by_api:
        return ""
    proof = platforms.confirm_submission(
        platforms.configured_api(), arrival.data.get("session", ""), arrival.person, arrival.data.get("study", "")
    )
    if proof == platforms.CONTRADICTED:
        raise ArrivalError(_("Prolific does not know this submission. Open the study from Prolific again."))
    return proof


# Steps ---------------------------------------------------------------------------------------------


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
    if assign_block(session, now) is None:
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
    tests = read_screening(session.study)
    session.questionnaire = dict(answers)
    session.save(update_fields=["questionnaire"])
    native = str(answers.get(NATIVE_LANGUAGE, ""))
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
    found = screening.verdict(session, screening.Kind.SOUND, read_screening(session.study))
    if found == screening.FAILED:
        end_session(session, State.SCREENED_OUT, now)
    elif found == screening.PASSED:
        _go_on(session, now)
    return session


@transaction.atomic
def answer_headphone_check(token: str, kind: str, attempt: int, given: Sequence[int], now: datetime) -> Session:
    """Score a headphone check; a gate ends the session after the last attempt, a flag only keeps the score."""
    session = session_for(token, lock=True)
    tests = read_screening(session.study)
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


def show_text(session: Session, kind: str) -> ShownText:
    """The text as this session reads it now; which version it was is kept with the session."""
    shown = shown_text(session.study, kind, session.language)
    seen = {"language": shown.language, "version": shown.version}
    if session.texts.get(kind) != seen:
        session.texts = session.texts | {kind: seen}
        session.save(update_fields=["texts"])
    return shown


def _stands_at(session: Session, step: Session.Step) -> bool:
    return session.state == State.ACTIVE and session.step == step


def _go_on(session: Session, now: datetime) -> None:
    steps = list_steps(session.study)
    later = [step for step in steps if STEPS.index(step) > STEPS.index(Step(session.step))]
    session.step, session.last_seen_at = later[0], now
    if session.step == Step.TRIALS:
        session.trials_started_at = session.heard_until = now
    session.save(update_fields=["step", "last_seen_at", "trials_started_at", "heard_until"])
    extend_lease(session, now)


def _keep_device(session: Session, told: Mapping[str, str]) -> None:
    read = {name: "".join(filter(str.isprintable, str(told.get(name, ""))))[:60] for name in DEVICE_FIELDS}
    found = {name: value for name, value in read.items() if value}
    if found:
        session.device = session.device | found
        session.save(update_fields=["device"])
        note(session, "sound-unlocked", **found)
