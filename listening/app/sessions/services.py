"""From an address that a person opened to their session: one person has one in a study, however often they come.

Nothing here needs a cookie: the session's own address is the credential, and a platform's frame may block the rest.
Only a bare own link, which names nobody, remembers its session in a cookie where the browser allows one.
"""

from __future__ import annotations

import secrets
from datetime import datetime

from django.db import transaction
from django.http import Http404
from django.utils.translation import gettext as _

from listening.models import Participant, Session, Study
from listening.people import prolific
from listening.people.platforms import Arrival, ArrivalError, person_key
from listening.studies.plans import PlatformPlan
from listening.trials.sessions import note

LONGEST_AGENT = 300


class NotOpenError(Exception):
    """Nobody can begin just now; the message says so in the language of the page."""


def study_of_link(key: str) -> Study:
    """The study of an address that evaluators were given; one that was never launched is not found."""
    study = Study.objects.filter(link_key=key, launched_at__isnull=False).first()
    if study is None:
        raise Http404
    return study


def join(study: Study, plan: PlatformPlan, arrival: Arrival, *, language: str, agent: str, now: datetime) -> Session:
    """The session of the person who came; a new one if they have none. Ten calls at once give one session.

    Raises:
        NotOpenError: they have none, and the study takes nobody just now.
        ArrivalError: the platform says that there is no such person at work on the study.
    """
    if arrival.is_preview:
        raise ValueError("Who only looks gets no session.")
    known = session_of(study, arrival)
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


def session_of(study: Study, arrival: Arrival) -> Session | None:
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
        participant=participant,
        language=language,
        device=device,
        platform_data=data,
        is_simulated=study.is_simulated,
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
    is_confirmed = known.platform_data.get("proof") == prolific.CONFIRMED
    return is_same and (is_confirmed or known.state != Session.State.ACTIVE)


def _proof(plan: PlatformPlan, arrival: Arrival) -> str:
    """What the platform says about this submission, asked outside of any transaction; empty where it is not asked."""
    if not plan.confirm_by_api:
        return ""
    proof = prolific.confirm(
        prolific.configured_api(), arrival.data.get("session", ""), arrival.person, arrival.data.get("study", "")
    )
    if proof == prolific.CONTRADICTED:
        raise ArrivalError(_("Prolific does not know this submission. Open the study from Prolific again."))
    return proof
