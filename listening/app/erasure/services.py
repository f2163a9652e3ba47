"""Taking part ends and everything that was answered is deleted: from any page, or afterwards by code.

What remains is that there was a session, when, and that it was withdrawn; nothing in it leads to a person or an answer.
"""

from __future__ import annotations

import secrets
import time
from datetime import datetime

from django.core.cache import cache
from django.db import transaction

from listening.models import Participant, Session
from listening.signals import answers_deleted
from listening.trials.sessions import end_session
from portal.core import audit

# Guesses at withdrawal codes from one address; a code has 31^16 values, so this only spares the server.
GUESSES_AT_MOST = 20
WINDOW_S = 3600
DELETED_WITH_A_SESSION = ("answers", "plays", "serves", "events", "screening_results", "flags")


class TooManyGuessesError(Exception):
    """From this address too many codes were tried within an hour."""


def withdraw(session: Session, now: datetime) -> int:
    """Delete what this person answered in the study and free their block; how many answers there were."""
    with transaction.atomic():
        participant = Participant.objects.select_for_update(no_key=True).get(pk=session.participant_id)
        locked = participant.sessions.select_for_update(no_key=True, of=("self",)).select_related("study", "block")
        mine = list(locked.filter(is_preview=session.is_preview).order_by("pk"))
        deleted = sum(_empty(one, now) for one in mine)
        participant.platform_id, participant.person_key = "", f"withdrawn-{secrets.token_hex(24)}"
        participant.save(update_fields=["platform_id", "person_key"])
        audit.record("study.session_withdrawn", session.study, session=session.pk, answers=deleted)
        if deleted and not session.is_preview:
            answers_deleted.send(sender=Session, study=session.study)
    session.refresh_from_db()
    return deleted


def withdraw_by_code(code: str, address: str, now: datetime) -> Session | None:
    """Withdraw whose code this is; None where it is nobody's.

    Raises:
        TooManyGuessesError: too many wrong codes came from this address.
    """
    _refuse_guessing(address)
    wanted = code.strip().lower().replace(" ", "")
    session = Session.objects.select_related("study").filter(withdrawal_code=wanted).first()
    if session is None:
        _count_guess(address)
    elif session.state != Session.State.WITHDRAWN:
        withdraw(session, now)
    return session


def _empty(session: Session, now: datetime) -> int:
    answers = session.answers.count()
    tasks = session.study.tasks
    trials = session.answers.filter(task=tasks[-1]).count() if tasks else 0  # where people stop is counted by it
    for name in DELETED_WITH_A_SESSION:
        getattr(session, name).all().delete()
    end_session(session, Session.State.WITHDRAWN, now, trials=trials)
    # Its code stays: who finished and was promised pay is paid, and a random code names nobody.
    session.questionnaire, session.platform_data, session.device, session.texts = {}, {}, {}, {}
    session.tab, session.heard_until = "", None
    session.save(update_fields=["questionnaire", "platform_data", "device", "texts", "tab", "heard_until"])
    return answers


def _counter(address: str) -> str:
    return f"listening:withdrawal:{address}:{int(time.time() // WINDOW_S)}"


def _refuse_guessing(address: str) -> None:
    if cache.get(_counter(address), 0) >= GUESSES_AT_MOST:
        raise TooManyGuessesError


def _count_guess(address: str) -> None:
    name = _counter(address)
    if not cache.add(name, 1, WINDOW_S):
        try:
            cache.incr(name)
        except ValueError:  # its hour ended just now
            cache.add(name, 1, WINDOW_S)
