"""Crowd platforms: what they put into an address, completion codes, where they may frame a page; Prolific's API.

A session's completion code is released at its end; before it no page, reply or row holds one. A study on an own link or
on Mechanical Turk gets a random code for each session, Prolific the one that the study holds for the outcome. What is
no completed test is recognised by what its code begins with (`PREFIXES`); where Prolific has no code for that, it is a
reference to ask for pay with. Who is screened out or withdraws, or loses a place without an answer, gets none.

All ids come from the address bar and are unproven; they are checked for their shape here and for their truth, where the
study asks for it, by Prolific's API: one question, answered by a `ProlificSubmission`, by None where there is none, or
by `Unreachable`. `HttpApi` asks Prolific itself (GET /api/v1/submissions/ID/, header ``Authorization: Token …``) and
waits for at most `TIMEOUT_S`; the token never leaves the server and stands in no message. Sources: Prolific's help on
external studies and codes; Amazon's reference of the ExternalQuestion and of its submission.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from unicodedata import category, normalize
from urllib.parse import quote, urlencode, urlsplit

from django.conf import settings
from django.http import HttpResponse
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _

from common.errors import InputError, ProblemsError, Unreachable
from common.line_texts import JOINERS, find_hidden_character
from listening.app.models import Session, Study
from listening.app.studies.settings import LONGEST_OWN_ID, OWN_SIGNS, PlatformPlan, parse_platform
from portal.core.keys import keyed_hashes

# What Mechanical Turk gives as the assignment while a worker only looks at a task.
MTURK_PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"
# The only hosts to which a browser may post a finished assignment.
MTURK_SUBMIT_HOSTS = ("www.mturk.com", "workersandbox.mturk.com")
# Those whose pages show a task in a frame, to workers and to requesters; the answer to a post may redirect to them.
MTURK_HOSTS = (*MTURK_SUBMIT_HOSTS, "worker.mturk.com", "requester.mturk.com", "requestersandbox.mturk.com")
PROLIFIC_END = "https://app.prolific.com/submissions/complete"
# What the ids of a platform look like. Sources: Prolific's API; Amazon's reference of CustomerId and EntityId, and the
# ids that it shows, which have at least ten characters.
PROLIFIC_ID, MTURK_ID = re.compile(r"[0-9a-f]{24}"), re.compile(r"(?=.*[0-9])[A-Z0-9]{10,64}")
PLATFORM_IDS = {
    Study.Platform.PROLIFIC: {"person": PROLIFIC_ID, "study": PROLIFIC_ID, "session": PROLIFIC_ID},
    Study.Platform.MTURK: {"person": re.compile(r"A[A-Z0-9]{9,63}"), "study": MTURK_ID, "session": MTURK_ID},
}
# What programs write where an id is missing, in small letters.
NO_IDS = frozenset(
    {
        "undefined",
        "null",
        "none",
        "nil",
        "nan",
        "n/a",
        "true",
        "false",
        "unknown",
        "anonymous",
        MTURK_PREVIEW.casefold(),
    }
)
# Names of ids that stand where an id is missing, without signs between their words.
NAMES_OF_IDS = frozenset(
    {
        *("prolificpid", "studyid", "sessionid", "workerid", "assignmentid", "hitid"),
        *("personid", "yourid", "participantid", "userid"),
    }
)
OUTCOME_OF_STATE = {
    Session.State.FINISHED: "complete",
    Session.State.SCREENED_OUT: "screened-out",
    Session.State.FAILED_ATTENTION: "failed-attention",
    Session.State.TECHNICAL: "technical",
}
# Of codes that are made here, of every end that is no completed test.
PREFIXES = {
    Session.State.FINISHED: "",
    Session.State.FAILED_ATTENTION: "CHECK-",
    Session.State.TECHNICAL: "TECH-",
    Session.State.EXPIRED: "PART-",
}
# Without the signs that look like others: a code may be typed by hand.
ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
NOT_HEARD = "not-heard"  # event of a session that was finished without listening, by what its browser reports
REFERENCE = re.compile(rf"({'|'.join(filter(None, PREFIXES.values()))})[{ALPHABET}]{{5}}-[{ALPHABET}]{{5}}")


@dataclass(frozen=True)
class Arrival:
    """Somebody who opened the study's address. `person`: as the platform names them, empty on a bare own link."""

    person: str = ""
    data: Mapping[str, str] = field(default_factory=dict)
    is_preview: bool = False


def read_arrival(plan: PlatformPlan, query: Mapping[str, str]) -> Arrival:
    """Return who comes, by the parameters of the address.

    Raises:
        InputError: what the platform adds is missing or cannot be its id.
    """
    is_own = plan.platform == Study.Platform.OWN
    found = {part: query.get(name, "").strip() for part, name in plan.parameters.items()}
    if is_own:
        found = {part: read_own_id(query, name) for part, name in plan.parameters.items()}
    elif plan.platform == Study.Platform.MTURK and found["session"] in {"", MTURK_PREVIEW}:
        return Arrival(is_preview=True)
    else:
        _check_platform_ids(plan, found)
    data = {part: value for part, value in found.items() if value and part != "person"}
    if plan.platform == Study.Platform.MTURK:
        data["submit_to"] = mturk_submit_address(query.get("turkSubmitTo", ""))
    return Arrival(found["person"], data)


def _check_platform_ids(plan: PlatformPlan, found: Mapping[str, str]) -> None:
    """Raise InputError unless all ids can be the platform's: of its form, and no two alike."""
    looks = PLATFORM_IDS[Study.Platform(plan.platform)]
    given = list(found.values())
    problems = [
        plan.parameters[part]
        for part, value in found.items()
        if (value or part != "study")
        and (looks[part].fullmatch(value) is None or len(set(value)) == 1 or given.count(value) > 1)
    ]
    if problems:
        raise InputError(
            _("This link is not complete. Open the study again from the platform. (Missing or not valid: %(names)s)")
            % {"names": ", ".join(dict.fromkeys(problems))}
        )


def read_own_id(query: Mapping[str, str], name: str) -> str:
    """Return what an own link says for this parameter, in NFC with single spaces; empty where it does not have it.

    Raises:
        InputError: what it says is no id: other signs, no letter or digit, too long, a word for a missing one,
            or the name of an id.
    """
    if name not in query:
        return ""
    found = " ".join(normalize("NFC", query[name]).split())
    word = found.casefold().strip(f"{OWN_SIGNS} ")
    bare, own_name = ("".join(filter(str.isalnum, each.casefold())) for each in (found, name))
    is_name = bare == own_name or bare in NAMES_OF_IDS
    are_signs = all(sign in f"{OWN_SIGNS} {JOINERS}" or category(sign)[0] in "LMN" for sign in found)
    are_signs = are_signs and not find_hidden_character(found)
    if word and word not in NO_IDS and not is_name and are_signs and len(found) <= LONGEST_OWN_ID:
        return found
    shown = "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in query[name][:60])
    raise InputError(
        _(
            "This link says %(name)s=%(found)s, which names nobody. Expected an ID of your own, of at most %(most)d "
            "letters, digits, spaces and %(signs)s. Please ask the person who gave you this link for another one."
        )
        % {"name": name, "found": shown, "most": LONGEST_OWN_ID, "signs": " ".join(OWN_SIGNS)}
    )


def mturk_submit_address(given: str) -> str:
    """Return where a finished assignment is posted: on one of Mechanical Turk's own hosts, and nowhere else.

    Raises:
        InputError: the address names another host, another scheme, a port, a user, a path, or nothing.
    """
    try:
        url = urlsplit(given)
        is_sound = url.scheme == "https" and url.netloc in MTURK_SUBMIT_HOSTS and url.path in {"", "/"}
    except ValueError:
        is_sound = False
    if not is_sound or url.query or url.fragment or given != given.strip() or not given.isprintable():
        raise InputError(_("This address is not complete: turkSubmitTo is not one of Mechanical Turk's own addresses."))
    return f"https://{url.netloc}/mturk/externalSubmit"


def person_keys(study: Study, person: str) -> list[str]:
    """Return the keyed hash by which exports name a person of this study; not to be undone without the portal's key.

    It is followed by those by former keys, under which the person may have come before.
    """
    return [mark.hex() for mark in keyed_hashes("listening.person", f"{study.pk}:{study.platform}:{person}")]


def network_key(study: Study, address: str) -> str:
    """Return the keyed hash of a network address in this study; of IPv6 of its /64, as one line has. Empty for none."""
    if not address:
        return ""
    with suppress(ValueError):
        found = ip_address(address)
        address = str(ip_network((found, 64), strict=False) if found.version == 6 else found)
    return salted_hmac("listening.network", f"{study.pk}:{address}", algorithm="sha256").hexdigest()


def way_back(session: Session) -> str:
    """Return Prolific's address that takes the session's code; empty elsewhere and while it has no such code."""
    if session.study.platform != Study.Platform.PROLIFIC or not session.completion_code:
        return ""
    if REFERENCE.fullmatch(session.completion_code):
        return ""
    return f"{PROLIFIC_END}?{urlencode({'cc': session.completion_code})}"


def mturk_form(session: Session) -> dict[str, str]:
    """Return what the browser posts to Mechanical Turk at the end; empty elsewhere and while there is no code."""
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


TIMEOUT_S = 5.0
CONFIRMED, CONTRADICTED, UNPROVEN = "confirmed", "contradicted", "unproven"
# In these states somebody is at work on the study; in all others the place belongs to nobody or the work is done.
AT_WORK = frozenset({"RESERVED", "ACTIVE"})
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ProlificSubmission:
    """What Prolific says about a submission; `status` in its own words, such as ``ACTIVE``."""

    participant: str
    study: str
    status: str


@dataclass(frozen=True)
class HttpApi:
    """Prolific's API at `address`, such as ``https://api.prolific.com``."""

    address: str
    token: str
    timeout_s: float = TIMEOUT_S

    def submission(self, submission: str) -> ProlificSubmission | None:
        """Return the submission of this id; None where there is none.

        Raises:
            Unreachable: nothing can be said.
        """
        import httpx

        url = f"{self.address}/api/v1/submissions/{quote(submission, safe='')}/"
        try:
            answer = httpx.get(url, headers={"Authorization": f"Token {self.token}"}, timeout=self.timeout_s)
        except httpx.HTTPError as error:
            raise Unreachable(type(error).__name__) from None
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        if answer.status_code != httpx.codes.OK:
            raise Unreachable(f"status {answer.status_code}")
        try:
            body = answer.json()
            found = [body[name] for name in ("participant", "study_id", "status")]
        except (ValueError, KeyError, TypeError):
            raise Unreachable("an answer that is no submission") from None
        if not all(isinstance(part, str) for part in found):
            raise Unreachable("an answer that is no submission")
        return ProlificSubmission(*found)


def configured_api() -> HttpApi | None:
    """Return the API that the settings name; None without a token."""
    if not settings.PROLIFIC_TOKEN:
        return None
    return HttpApi(settings.PROLIFIC_URL, settings.PROLIFIC_TOKEN)


def confirm_submission(api: HttpApi | None, submission: str, participant: str, study: str) -> str:
    """Return whether this participant is at work on this submission: ``confirmed``, ``contradicted`` or ``unproven``.

    Unproven is what cannot be asked: no API, no answer. Nobody is turned away for that; the record tells it.
    """
    if api is None:
        return UNPROVEN
    if not submission:
        return CONTRADICTED
    try:
        found = api.submission(submission)
    except Unreachable as reason:
        log.warning("Prolific could not be asked about a submission: %s", reason)
        return UNPROVEN
    if found is None:
        return CONTRADICTED
    is_theirs = found.participant == participant and (not study or found.study == study)
    return CONFIRMED if is_theirs and found.status.upper().replace("-", "_") in AT_WORK else CONTRADICTED


def release_code(session: Session) -> str:
    """Return the code of a session that has ended, kept in its row; empty where its outcome has none.

    The same however often it is called, at once or one after the other.
    """
    if not session.completion_code and (code := _code_for(session)):
        # Only the first of two calls at once writes; both then read what it wrote.
        Session.objects.filter(pk=session.pk, completion_code="").update(completion_code=code)
        session.completion_code = Session.objects.values_list("completion_code", flat=True).get(pk=session.pk)
    return session.completion_code


def outcome_of(session: Session) -> Session.State:
    """Return the end by which a session is paid: who finished without listening has no completed test."""
    state = Session.State(session.state)
    if state == Session.State.FINISHED and session.events.filter(kind=NOT_HEARD, is_told=False).exists():
        return Session.State.FAILED_ATTENTION
    return state


def _code_for(session: Session) -> str:
    if session.is_preview:
        return ""
    state = outcome_of(session)
    if session.study.platform == Study.Platform.PROLIFIC and (code := _prolific_code(session, state)):
        return code
    if state not in PREFIXES or (state == Session.State.EXPIRED and not session.answers.exists()):
        return ""
    if session.study.platform == Study.Platform.PROLIFIC and state == Session.State.FINISHED:
        return ""  # such a study cannot be launched; a session in it still has to end
    return PREFIXES[state] + "-".join("".join(secrets.choice(ALPHABET) for _ in range(5)) for _ in range(2))


def _prolific_code(session: Session, outcome: Session.State) -> str:
    try:
        codes = parse_platform(session.study).codes
    except ProblemsError:
        return ""
    # Who finishes in good faith is paid: without a code of its own, a failed check gets the one for all.
    is_paid_all = session.state == Session.State.FAILED_ATTENTION
    return codes.get(OUTCOME_OF_STATE.get(outcome, ""), codes.get("complete", "") if is_paid_all else "")
