"""Completion codes: minted or released here only, once a session has ended on the server.

A study on an own link or on Mechanical Turk gets a random code for each session; Prolific gets the code that the
study holds for the outcome. Before the end no page, reply or row holds a code; who withdraws or loses their block
gets none.
"""

from __future__ import annotations

import secrets

from listening.models import Session, Study
from listening.studies.plans import PlanError, parse_platform

OUTCOME_OF_STATE = {
    Session.State.FINISHED: "complete",
    Session.State.SCREENED_OUT: "screened-out",
    Session.State.FAILED_ATTENTION: "failed-attention",
    Session.State.TECHNICAL: "technical",
}
# Without the signs that look like others: a code may be typed by hand.
ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"


def release_code(session: Session) -> str:
    """The code of a session that has ended, kept in its row; empty where its outcome has none.

    The same however often it is called, at once or one after the other.
    """
    if not session.completion_code and (code := _code_for(session)):
        # Only the first of two calls at once writes; both then read what it wrote.
        Session.objects.filter(pk=session.pk, completion_code="").update(completion_code=code)
        session.completion_code = Session.objects.values_list("completion_code", flat=True).get(pk=session.pk)
    return session.completion_code


def _code_for(session: Session) -> str:
    outcome = OUTCOME_OF_STATE.get(Session.State(session.state))
    if outcome is None or session.is_preview:
        return ""
    if session.study.platform != Study.Platform.PROLIFIC:
        return _mint()
    try:
        codes = parse_platform(session.study).codes
    except PlanError:  # such a study cannot be launched; a session in it still has to end
        return ""
    # Who finishes in good faith is paid: without a code of its own, a failed check gets the one for all.
    return codes.get(outcome, codes.get("complete", "") if outcome == "failed-attention" else "")


def _mint() -> str:
    return "-".join("".join(secrets.choice(ALPHABET) for _ in range(5)) for _ in range(2))
