"""A session from the outside: finding it by its token, whose tab writes, how it ends.

The token is the only credential: an unknown one is not found. What a session answers stands in
`listening.trials.answers`, which block it holds in `listening.trials.leases`. Public: `session_for`,
`session_answering`, `end_session`, `take_over`, `note`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.http import Http404

from listening.models import Session, SessionEvent
from listening.people import codes
from listening.trials import leases
from listening.trials.courses import known_course
from listening.trials.statements import Statement

MOST_OF_A_KIND = 1000
# What taking an answer reads of a session, whose row it holds.
ANSWERING = Statement(
    lambda: _locked(Session.objects.filter(token="")),
    *("id", "token", "state", "step", "language", "tab", "heard_until", "skips", "is_preview", "participant", "study"),
    *("block", "started_at", "consented_at", "trials_started_at", "last_seen_at"),
)


def session_for(token: str, lock: bool = False) -> Session:
    """The session of this address with its study and block.

    Args:
        lock: hold its row until the transaction ends, so that nobody else changes it meanwhile.

    Raises:
        Http404: there is none.
    """
    sessions = Session.objects.select_related("study", "block")
    session = (_locked(sessions) if lock else sessions).filter(token=token).first()
    if session is None:
        raise Http404
    return session


def session_answering(rows: Sequence[Sequence[Any]]) -> Session:
    """The session of what `ANSWERING` found; the rest of it comes when it is asked for.

    Its study is the one that this process knows, if it does: what is fixed since the launch is all that may be read.

    Raises:
        Http404: there is none.
    """
    if not rows:
        raise Http404
    session: Session = ANSWERING.instance(rows[0])
    known = known_course(session)
    if known is not None:
        session.study = known.study
    return session


def end_session(session: Session, state: str, now: datetime, **told: Any) -> None:
    """End it in this state: finish its block, or free it for the next one, and release the code of its outcome.

    Only a finished session finishes its block. One that is over already can still be withdrawn, which frees its block
    as well; no other end changes an end. `told`: more for its event. The caller holds the session's row in a
    transaction.
    """
    if session.state != Session.State.ACTIVE and state != Session.State.WITHDRAWN:
        return
    left_at = session.step
    session.state, session.step = state, Session.Step.END
    session.ended_at = session.ended_at or now
    session.save(update_fields=["state", "step", "ended_at"])
    leases.release(session, finished=state == Session.State.FINISHED)
    note(session, f"ended-{state}", step=left_at, **told)
    codes.release_code(session)


def take_over(session: Session, tab: str) -> None:
    """Let this browser tab write from now on; the one that did so far is told with its next request."""
    if session.tab != tab:
        if session.tab:
            note(session, "taken-over")
        session.tab = tab
        session.save(update_fields=["tab"])


def note(session: Session, kind: str, **data: Any) -> None:
    """Write down something that happened, as the server saw it; what happens without end, only so often."""
    if session.events.filter(kind=kind, is_told=False).count() < MOST_OF_A_KIND:
        SessionEvent.objects.create(session=session, kind=kind, data=data)


def _locked(sessions: QuerySet[Session]) -> QuerySet[Session]:
    return sessions.select_for_update(of=("self",), no_key=True)
