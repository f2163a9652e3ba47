"""What crowd platforms put into an address, what they expect at the end, and where they may frame a page.

All ids come from the address bar and are unproven; they are checked for their shape here and for their truth, where
the study asks for it, by `listening.people.prolific`. Sources: Prolific's help on external studies and codes;
Amazon's reference of the ExternalQuestion and of its submission.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit

from django.http import HttpResponse
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _

from listening.models import Session, Study
from listening.studies.plans import PlatformPlan

# What Mechanical Turk gives as the assignment while a worker only looks at a task.
MTURK_PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"
# The only hosts to which a browser may post a finished assignment.
MTURK_SUBMIT_HOSTS = ("www.mturk.com", "workersandbox.mturk.com")
# Those whose pages show a task in a frame, to workers and to requesters; the answer to a post may redirect to them.
MTURK_HOSTS = (
    *MTURK_SUBMIT_HOSTS,
    "worker.mturk.com",
    "requester.mturk.com",
    "requestersandbox.mturk.com",
)
PROLIFIC_END = "https://app.prolific.com/submissions/complete"
ID = re.compile(r"[A-Za-z0-9_.:-]{1,120}")


class ArrivalError(ValueError):
    """The address does not lead into the study; the message says so in the language of the page."""


@dataclass(frozen=True)
class Arrival:
    """Somebody who opened the study's address. `person`: as the platform names them, empty on a bare own link."""

    person: str = ""
    data: Mapping[str, str] = field(default_factory=dict)
    is_preview: bool = False


def read_arrival(plan: PlatformPlan, query: Mapping[str, str]) -> Arrival:
    """Who comes, by the parameters of the address.

    Raises:
        ArrivalError: what the platform adds is missing or not sound.
    """
    found = {part: query.get(name, "").strip() for part, name in plan.parameters.items()}
    if plan.platform == Study.Platform.MTURK and found["session"] in {"", MTURK_PREVIEW}:
        return Arrival(is_preview=True)
    faults = [plan.parameters[part] for part, value in found.items() if value and not ID.fullmatch(value)]
    if plan.platform != Study.Platform.OWN and not found["person"]:
        faults.append(plan.parameters["person"])
    if faults:
        names = ", ".join(dict.fromkeys(faults))
        raise ArrivalError(
            _("This address is not complete: %(names)s is missing or not valid. Open the study from the platform.")
            % {"names": names}
        )
    data = {part: value for part, value in found.items() if value and part != "person"}
    if plan.platform == Study.Platform.MTURK:
        data["submit_to"] = mturk_submit_address(query.get("turkSubmitTo", ""))
    return Arrival(found["person"], data)


def mturk_submit_address(given: str) -> str:
    """Where a finished assignment is posted: on one of Mechanical Turk's own hosts, and nowhere else.

    Raises:
        ArrivalError: the address names another host, another scheme, a port, a user, a path, or nothing.
    """
    try:
        url = urlsplit(given)
        is_sound = url.scheme == "https" and url.netloc in MTURK_SUBMIT_HOSTS and url.path in {"", "/"}
    except ValueError:
        is_sound = False
    if not is_sound or url.query or url.fragment or given != given.strip() or not given.isprintable():
        raise ArrivalError(
            _("This address is not complete: turkSubmitTo is not one of Mechanical Turk's own addresses.")
        )
    return f"https://{url.netloc}/mturk/externalSubmit"


def person_key(study: Study, person: str) -> str:
    """The keyed hash by which exports name a person of this study; not to be undone without the portal's key."""
    return salted_hmac("listening.person", f"{study.pk}:{study.platform}:{person}", algorithm="sha256").hexdigest()


def way_back(session: Session) -> str:
    """Prolific's address that takes the session's code; empty elsewhere and while there is no code."""
    if session.study.platform != Study.Platform.PROLIFIC or not session.completion_code:
        return ""
    return f"{PROLIFIC_END}?{urlencode({'cc': session.completion_code})}"


def mturk_form(session: Session) -> dict[str, str]:
    """What the browser posts to Mechanical Turk at the end; empty elsewhere and while there is no code."""
    data = session.platform_data
    is_complete = data.get("submit_to") and data.get("session") and session.completion_code
    if session.study.platform != Study.Platform.MTURK or not is_complete:
        return {}
    return {"action": data["submit_to"], "assignmentId": data["session"], "code": session.completion_code}


def allow_platform(response: HttpResponse, study: Study, *, may_submit: bool = False) -> HttpResponse:
    """Let the study's platform show this page in its frame, and with `may_submit` take its form; nobody else's may."""
    if study.platform == Study.Platform.MTURK:
        hosts = [f"https://{host}" for host in MTURK_HOSTS]
        policy = {"frame-ancestors": hosts}
        if may_submit:
            policy["form-action"] = ["'self'", *hosts]
        response._csp_replace = policy  # type: ignore[attr-defined]
        response.xframe_options_exempt = True
    return response
