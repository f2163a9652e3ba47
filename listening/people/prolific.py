"""Asking Prolific whether a submission is what its address says, by its API; the portal works without that, too.

`Api` is the interface: one question, answered by a `Submission`, by None where there is none, or by `UnreachableError`.
`HttpApi` asks Prolific itself (GET /api/v1/submissions/ID/, header ``Authorization: Token …``) and waits for at most
`TIMEOUT_S`. The token never leaves the server and stands in no message.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote

from django.conf import settings

TIMEOUT_S = 5.0
CONFIRMED, CONTRADICTED, UNPROVEN = "confirmed", "contradicted", "unproven"
# In these states somebody is at work on the study; in all others the place belongs to nobody or the work is done.
AT_WORK = frozenset({"RESERVED", "ACTIVE"})
log = logging.getLogger(__name__)


class UnreachableError(Exception):
    """Prolific did not answer, or not in a way that tells anything about the submission."""


@dataclass(frozen=True)
class Submission:
    """What Prolific says about a submission; `status` in its own words, such as ``ACTIVE``."""

    participant: str
    study: str
    status: str


class Api(Protocol):
    """Where submissions are asked for."""

    def submission(self, submission: str) -> Submission | None:
        """The submission of this id; None where there is none.

        Raises:
            UnreachableError: nothing can be said.
        """


@dataclass(frozen=True)
class HttpApi:
    """Prolific's API at `address`, such as ``https://api.prolific.com``."""

    address: str
    token: str
    timeout_s: float = TIMEOUT_S

    def submission(self, submission: str) -> Submission | None:
        import httpx

        url = f"{self.address}/api/v1/submissions/{quote(submission, safe='')}/"
        try:
            answer = httpx.get(url, headers={"Authorization": f"Token {self.token}"}, timeout=self.timeout_s)
        except httpx.HTTPError as error:
            raise UnreachableError(type(error).__name__) from None
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        if answer.status_code != httpx.codes.OK:
            raise UnreachableError(f"status {answer.status_code}")
        try:
            body = answer.json()
            found = [body[name] for name in ("participant", "study_id", "status")]
        except (ValueError, KeyError, TypeError):
            raise UnreachableError("an answer that is no submission") from None
        if not all(isinstance(part, str) for part in found):
            raise UnreachableError("an answer that is no submission")
        return Submission(*found)


def configured_api() -> Api | None:
    """The API that the settings name; None without a token."""
    if not settings.PROLIFIC_TOKEN:
        return None
    return HttpApi(settings.PROLIFIC_URL, settings.PROLIFIC_TOKEN)


def confirm(api: Api | None, submission: str, participant: str, study: str) -> str:
    """Whether this participant is at work on this submission: ``confirmed``, ``contradicted`` or ``unproven``.

    Unproven is what cannot be asked: no API, no answer. Nobody is turned away for that; the record tells it.
    """
    if api is None:
        return UNPROVEN
    if not submission:
        return CONTRADICTED
    try:
        found = api.submission(submission)
    except UnreachableError as reason:
        log.warning("Prolific could not be asked about a submission: %s", reason)
        return UNPROVEN
    if found is None:
        return CONTRADICTED
    is_theirs = found.participant == participant and (not study or found.study == study)
    return CONFIRMED if is_theirs and found.status.upper().replace("-", "_") in AT_WORK else CONTRADICTED
