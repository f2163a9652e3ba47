"""From the address that a person opened to their trials: joining a study, its steps, and what each one changes.

One person has one session in a study, however often they come. A person who comes under another submission of the
platform never sees it: they begin again, once the platform confirms them or the first session is over. Nothing here
needs a cookie: the session's own address is the credential, and a platform's frame may block the rest. Each function of
a step is one transaction on the locked session and does nothing, when its step is over already: what is sent twice, or
from an old page, changes nothing. Locks are taken in this order: study, person, session, block.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from common.errors import InputError, NotPossible
from listening.app.models import Participant, Session, Study, StudyText
from listening.app.sessions import platforms, pre_screening
from listening.app.sessions.block_leases import (
    OTHER_SUBMISSION,
    assign_block,
    end_session,
    extend_lease,
    has_free_block,
    is_complete,
    is_share_taken,
    is_silent,
    network_share,
    note,
)
from listening.app.sessions.platforms import Arrival, person_keys
from listening.app.sessions.selectors import STEPS, list_steps, read_screening, session_for
from listening.app.studies.interface_words import ships_words
from listening.app.studies.rules import CONSENT_FIELDS, NETWORKS_OF_A_STUDY
from listening.app.studies.selectors import ShownText, expected_effort, newest_text, shown_text
from listening.app.studies.settings import PlatformPlan
from listening.questions import Orders

Step = Session.Step
State = Session.State
WORDS = StudyText.Kind.WORDS
DEVICE_FIELDS = ("context_state", "sample_rate", "screen")
LONGEST_AGENT = 300
# Sessions that may begin: from one address as many as it may take places, in all some for each place.
NETWORK_WINDOW, STUDY_WINDOW = timedelta(hours=1), timedelta(minutes=10)
STARTS_PER_PLACE, FEWEST_STARTS = 4, 60
OVER = "over"  # code of a refusal that stays: the study has ended, or they have taken part
ALREADY = gettext_lazy("You have already taken part in this study.")


def study_for_withdrawal(key: str) -> Study | None:
    """Return the study in whose words somebody is told how to withdraw; None where the address names none."""
    return Study.objects.filter(link_key=key, launched_at__isnull=False).first() if key else None


def join(
    study: Study, plan: PlatformPlan, arrival: Arrival, *, language: str, agent: str, network: str, now: datetime
) -> Session:
    """Return the session of the person who came; a new one if they have none. Ten calls at once give one session.

    Args:
        network: keyed hash of the address they come from; empty where it is unknown.

    Raises:
        NotPossible: they would begin, and the study takes nobody just now, or not them.
        InputError: the platform says that there is no such person at work on the study.
    """
    if arrival.is_preview:
        raise ValueError("Who only looks gets no session.")
    known = find_session(study, arrival)
    if known is None:
        _check_open(study)
    is_confirmed = known is not None and known.platform_data.get("proof") == platforms.CONFIRMED
    is_over = known is not None and known.state != State.ACTIVE  # then only its end is shown
    proof = "" if is_confirmed or is_over else _proof(plan, arrival)
    with transaction.atomic():
        if known is None:  # the second request waits here, and then sees the session of the first
            study = Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=study.pk)
        session = _join(study, arrival, proof, language=language, agent=agent, network=network, now=now)
        if session.state == State.ACTIVE:
            told = {**arrival.data, **({"proof": proof} if proof else {})}
            session.platform_data = session.platform_data | told
        session.last_seen_at = now
        session.save(update_fields=["last_seen_at", "platform_data"])
    return session


@transaction.atomic
def start_again(session: Session, network: str, now: datetime) -> Session:
    """Return a new session for somebody whose block went to another; what they answered before stays as it is.

    Raises:
        NotPossible: the study takes nobody just now, or this session did not end that way.
    """
    study = Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=session.study_id)
    participant = Participant.objects.select_for_update(no_key=True).get(pk=session.participant_id)
    newest = participant.sessions.filter(is_preview=False).order_by("-pk").first()
    if newest is not None and newest.state == State.ACTIVE and _is_alike(newest, session.platform_data):
        return newest
    if newest is None or newest.state != State.EXPIRED:
        raise NotPossible(ALREADY, code=OVER)
    _check_starts(study, network, now)
    told = {"language": session.language, "device": session.device, "network": network}
    return _begin(study, participant, **told, data=newest.platform_data)


@transaction.atomic
def note_refusal(study: Study, kind: str, now: datetime) -> None:
    """Count that somebody was turned away, for the monitor of the organizers.

    Args:
        kind: ``network``, ``study`` or ``full``.
    """
    locked = Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=study.pk)
    count = locked.refusals.get(kind, {}).get("count", 0) + 1
    locked.refusals = locked.refusals | {kind: {"count": count, "last_at": now.isoformat(timespec="seconds")}}
    locked.save(update_fields=["refusals"])


def find_session(study: Study, arrival: Arrival) -> Session | None:
    """Return the newest session that the person who came has under this submission; None where they have none."""
    if not arrival.person:
        return None
    found = Session.objects.filter(
        participant__study=study, participant__person_key__in=person_keys(study, arrival.person)
    )
    newest = found.filter(is_preview=False).order_by("-pk").first()
    return newest if newest is not None and _is_alike(newest, arrival.data) else None


def _is_alike(session: Session, data: Mapping[str, str]) -> bool:
    """Return whether a session belongs to this submission of the platform."""
    return str(session.platform_data.get("session", "")) == data.get("session", "")


def _check_open(study: Study) -> None:
    if study.state == Study.State.CLOSED:
        raise NotPossible(_("This study has ended. Thank you for your interest."), code=OVER)
    if is_complete(study):
        raise NotPossible(_("This study has all the answers that it needs. Thank you for your interest."), code=OVER)
    if study.state != Study.State.OPEN:
        raise NotPossible(_("This study is paused just now. Please try again later with the same link."))


def _check_starts(study: Study, network: str, now: datetime) -> None:
    """Refuse a start that is not open, or one too many; the caller holds the study's row.

    Raises:
        NotPossible: the study takes nobody just now.
        NotPossible: from this address within an hour, or in all within ten minutes.
    """
    _check_open(study)
    starts = study.sessions.filter(is_preview=False)
    most = max(FEWEST_STARTS, STARTS_PER_PLACE * study.blocks.count())
    newest = starts.filter(started_at__gt=now - STUDY_WINDOW)
    if network:
        share = network_share(study)
        here = starts.filter(network=network, started_at__gt=now - NETWORK_WINDOW)
        # Who finished made way for the next one in a class; all starts of an address have a limit all the same.
        unfinished = here.exclude(state=State.FINISHED).count()
        of_study = newest.filter(network=network).count()
        quarter = most // NETWORKS_OF_A_STUDY  # at least one of which is left for others, however many places it has
        allowed = max(quarter, min(share, most - quarter))
        if unfinished >= share or here.count() >= STARTS_PER_PLACE * share or of_study >= allowed:
            sentence = _(
                "Too many people have begun this test from your network in the last hour. Please try again in an hour."
            )
            raise NotPossible(sentence, code="network")
    if newest.count() >= most:
        sentence = _("Very many people are beginning this test just now. Please try again in ten minutes.")
        raise NotPossible(sentence, code="study")


def _join(
    study: Study, arrival: Arrival, proof: str, *, language: str, agent: str, network: str, now: datetime
) -> Session:
    keys = person_keys(study, arrival.person) if arrival.person else [secrets.token_hex(32)]
    participant = study.participants.select_for_update(no_key=True).filter(person_key__in=keys).first()
    if participant is not None:
        newest = participant.sessions.filter(is_preview=False).order_by("-pk").first()
        if newest is not None and _is_alike(newest, arrival.data):
            return newest
        if newest is not None:
            _make_way(newest, proof, now)
    _check_starts(study, network, now)
    participant = participant or study.participants.create(person_key=keys[0], platform_id=arrival.person)
    device = {"agent": agent[:LONGEST_AGENT]}
    return _begin(study, participant, language=language, device=device, network=network, data={})


def _make_way(first: Session, proof: str, now: datetime) -> None:
    """End a person's session under another submission, so that they can begin again.

    What only claims to be the same person takes nothing from somebody who is listening.

    Raises:
        NotPossible: the session is over and cannot be continued.
        NotPossible: somebody may be at work in it.
    """
    first = session_for(first.token, lock=True)
    if first.state == State.ACTIVE:
        is_theirs = proof == platforms.CONFIRMED
        if not (is_theirs or first.consented_at is None or is_silent(first, now)):
            raise NotPossible(
                _(
                    "Your account on the platform is already taking part in another submission. If that was you, "
                    "continue there; if you returned it, try again in %(minutes)d minutes."
                )
                % {"minutes": first.study.lease_minutes}
            )
        end_session(first, State.EXPIRED, now, reason=OTHER_SUBMISSION)
    elif first.state not in {State.EXPIRED, State.TECHNICAL}:
        raise NotPossible(ALREADY, code=OVER)


def _begin(
    study: Study, participant: Participant, *, language: str, device: Any, network: str, data: dict[str, str]
) -> Session:
    return study.sessions.create(
        participant=participant,
        language=language,
        device=device,
        network=network,
        platform_data=data,
        is_simulated=study.is_simulated,
    )


def _proof(plan: PlatformPlan, arrival: Arrival) -> str:
    """Ask what the platform says about this submission, outside of any transaction; empty where it is not asked."""
    if not plan.confirm_by_api:
        return ""
    proof = platforms.confirm_submission(
        platforms.configured_api(), arrival.data.get("session", ""), arrival.person, arrival.data.get("study", "")
    )
    if proof == platforms.CONTRADICTED:
        raise InputError(_("Prolific has no such submission. Open the study from Prolific again."))
    return proof


# Steps ---------------------------------------------------------------------------------------------


@transaction.atomic
def give_consent(token: str, now: datetime) -> Session:
    """Give consent: from here on sounds are served. A place is taken only when the trials are reached.

    Raises:
        NotPossible: there is none to be had just now; nothing is kept.
    """
    study = _lock_study(token)
    session = session_for(token, lock=True)
    if not _stands_at(session, Step.CONSENT):
        return session
    if not session.is_preview:
        _require_place(study, session, now)
        if not has_free_block(study, now):
            raise NotPossible(code="full")
    session.consented_at = now
    session.save(update_fields=["consented_at"])
    told = {name: getattr(session.study, name) for name in CONSENT_FIELDS} | expected_effort(session.study)
    note(session, "consented", **told, currency=session.study.currency)
    _go_on(session, now)
    return session


@transaction.atomic
def answer_questions(token: str, answers: Mapping[str, Any], now: datetime) -> Session:
    """Keep the questionnaire; somebody whom the study is not for, by language or hearing, is thanked and let go."""
    session = session_for(token, lock=True)
    if not _stands_at(session, Step.QUESTIONS):
        return session
    session.questionnaire = dict(answers)
    session.save(update_fields=["questionnaire"])
    if not pre_screening.check_background(session, read_screening(session.study)):
        end_session(session, State.SCREENED_OUT, now)
    else:
        _go_on(session, now)
    return session


@transaction.atomic
def answer_check(
    token: str, kind: str, attempt: int, given: Sequence[int], told: Mapping[str, str], now: datetime
) -> Session:
    """Score a check before the trials; a gate ends the session after the last attempt, a flag only keeps the score."""
    session = session_for(token, lock=True)
    screening = read_screening(session.study)
    if session.state != State.ACTIVE or kind != pre_screening.next_check(session, screening):
        return session
    if kind == pre_screening.Kind.SOUND:
        _keep_device(session, told)
    pre_screening.answer_test(session, kind, attempt, given)
    if pre_screening.attempts_left(session, kind, screening) == 0 and screening.is_gate(kind):
        end_session(session, State.SCREENED_OUT, now)
    elif pre_screening.next_check(session, screening) is None:
        _go_on(session, now)
    return session


@transaction.atomic
def begin_trials(token: str, now: datetime) -> Session:
    """Give a session its place once the role play was read; time runs from here.

    Raises:
        NotPossible: there is none to be had just now; they may try again.
    """
    study = _lock_study(token)
    session = session_for(token, lock=True)
    if not _stands_at(session, Step.ROLE_PLAY):
        return session
    if not session.is_preview:
        _require_place(study, session, now)
    if (block := assign_block(session, now)) is None:
        raise NotPossible(code="full")
    if study.orders != Orders.AS_LISTED:
        note(session, "question-order", tasks=[one.key for one in study.asked_in(block.number)])
    _go_on(session, now)
    return session


def _lock_study(token: str) -> Study:
    """Return the study of a session, as it is now and until the transaction ends: it is locked before its session."""
    return get_object_or_404(Study.objects.select_for_update(no_key=True, of=("self",)), sessions__token=token)


def explain_no_place(session: Session, now: datetime) -> str:
    """Say why somebody who is asked for consent would find no place: the code of `_require_place`, ``full`` or ""."""
    if session.is_preview:
        return ""
    try:
        _require_place(session.study, session, now)
    except NotPossible as reason:
        return reason.code
    return "" if has_free_block(session.study, now) else "full"


def _require_place(study: Study, session: Session, now: datetime) -> None:
    if study.state != Study.State.OPEN:
        raise NotPossible(code="state")
    if is_complete(study):
        raise NotPossible(code="complete")
    if is_share_taken(study, session.network, now):
        raise NotPossible(code="network")


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
    """Return the text as this session reads it now; its version is kept with the session, and that of the words
    around it where they are the study's own."""
    shown = shown_text(session.study, kind, session.language)
    seen = {kind: {"language": shown.language, "version": shown.version}}
    if not ships_words(session.language) and (words := newest_text(session.study, WORDS, session.language)):
        seen |= {WORDS.value: {"language": words.language, "version": words.version}}
    if session.texts | seen != session.texts:
        session.texts = session.texts | seen
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
