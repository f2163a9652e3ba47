"""What every end of a session means for the pay, and what to do now where the evaluator came from.

No end leaves somebody without both sentences. None of them promises an amount: what is paid, and for what, stands in
the consent and is decided by those who run the study, who see the code and how far somebody came.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext as _

from listening.app.models import Session, Study
from listening.app.sessions import platforms
from listening.app.sessions.block_leases import CLOSED, OTHER_SUBMISSION

State = Session.State
Platform = Study.Platform


@dataclass(frozen=True)
class Ending:
    """`reason`: why a place was lost, empty where somebody was away for too long."""

    reason: str
    code: str
    is_reference: bool
    pay: str
    to_do: str


def describe_end(session: Session) -> Ending:
    """Return the end of a session that is over."""
    code = "" if session.is_preview else session.completion_code
    is_reference = session.study.platform == Platform.PROLIFIC and bool(code) and not platforms.way_back(session)
    return Ending(_reason(session), code, is_reference, _pay(session, code), _to_do(session, code))


def _reason(session: Session) -> str:
    if session.state != State.EXPIRED:
        return ""
    ends = session.events.filter(kind=f"ended-{State.EXPIRED}", is_told=False).values_list("data", flat=True)
    return next((data["reason"] for data in ends if data.get("reason") in {CLOSED, OTHER_SUBMISSION}), "")


def _pay(session: Session, code: str) -> str:
    if not session.study.pay_per_hour:
        return _("Nobody is paid for taking part in this study.")
    complete = session.study.platform_settings.get("codes", {}).get("complete")
    match platforms.outcome_of(session):
        case State.FINISHED:
            return _("You finished the test: the code is for the full pay.")
        case State.FAILED_ATTENTION if code == complete:
            return _("You finished the test: the code is for the full pay.")
        case State.FAILED_ATTENTION:
            return _("The code says that you finished the test. The organizers of the study decide on the pay by it.")
        case State.TECHNICAL if code:
            return _(
                "The code says that a technical error ended the test. The organizers of the study see how far you "
                "got, and decide on the pay accordingly."
            )
        case State.EXPIRED if code:
            return _(
                "The code says that the test is not complete. The organizers of the study see how far you got, and "
                "decide on the pay accordingly."
            )
        case State.EXPIRED:
            return _("You had not answered any recording yet, so there is nothing to be paid.")
        case State.SCREENED_OUT if code:
            return _("The code says that you did not meet the test's conditions. Prolific shows what is paid for that.")
        case State.SCREENED_OUT:
            return _("Only the test itself is paid, and it had not begun yet.")
        case State.WITHDRAWN if code:
            return _("The completion code that you were given stays valid.")
        case State.WITHDRAWN:
            return _("A test that was stopped is not paid, because its answers are deleted.")
    return _("The organizers of the study decide on the pay.")


def _to_do(session: Session, code: str) -> str:
    match session.study.platform:
        case Platform.PROLIFIC if platforms.way_back(session):
            return _("Go back to Prolific with the button, or enter the code there.")
        case Platform.PROLIFIC if code:
            return _(
                "Please return your submission on Prolific, and send this reference there in a message to the "
                "organizers of the study."
            )
        case Platform.PROLIFIC:
            return _("Please return your submission on Prolific.")
        case Platform.MTURK if platforms.mturk_form(session):
            return _("Submit the task with the button.")
        case Platform.MTURK if code:
            return _(
                "If you have not submitted the task yet, write to the organizers of the study on Mechanical Turk, "
                "with the code."
            )
        case Platform.MTURK:
            return _("Please return the task on Mechanical Turk.")
    if code and not session.study.pay_per_hour:
        return _("You need this code only if somebody asks you to show that you took part.")
    return _("Give this code to the person who asked you to take part.") if code else _("There is nothing more to do.")
