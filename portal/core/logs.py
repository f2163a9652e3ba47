"""Lines of the log: the ids of request and job, and no address that opens something for anyone who knows it."""

from __future__ import annotations

import json
import logging
import re
import uuid
from collections.abc import Callable
from contextvars import ContextVar

from django.http import HttpRequest, HttpResponse

# Sessions and studies of evaluators, signed audio and figures, invitations, confirmations, passwords to be chosen,
# the first account; in an address that leads on to another one (``?next=``) a slash may be written as %2F.
_OPENS = "listen/join|listen|media|teams/invitations|sign-up/confirm|password|first-account".replace("/", "(?:/|%2F)")
_HARMLESS = "withdraw|mailed|changed|set"
SECRET = re.compile(
    rf"((?:/|%2F)(?:{_OPENS})(?:/|%2F))(?!(?:{_HARMLESS})(?:/|%2F))(?:(?!%2F)[^/\s?&\"'])+", re.IGNORECASE
)
# What is under way in this thread; an id of a request is the proxy's (X-Request-ID) or made here.
request_id: ContextVar[str] = ContextVar("request_id", default="")
job_id: ContextVar[str] = ContextVar("job_id", default="")
REFUSALS_EVERY_S, LONGEST_REFUSAL = 60.0, 300
_REQUEST_ID = re.compile(r"[\w-]{1,64}")


def name_request(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Give each request an id, which its log lines have; the answer has none, as equal answers have to be equal."""

    def named(request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-ID", "")
        # It stays until the next request of this thread: answers of 4xx and 5xx are logged after the middleware.
        request_id.set(given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex)
        return get_response(request)

    return named


class JsonLine(logging.Formatter):
    """One object a line: time, level, logger, message, the ids of request and job where there are any, a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "request": request_id.get(),
            "job": job_id.get(),
            "trace": SECRET.sub(r"\1…", self.formatException(record.exc_info)) if record.exc_info else "",
        }
        return json.dumps({key: value for key, value in line.items() if value}, ensure_ascii=False)


class WithoutSecrets(logging.Filter):
    """Takes the secret part out of addresses in a message."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if SECRET.search(message):
            record.msg, record.args = SECRET.sub(r"\1…", message), None
        return True


class BriefRefusals(logging.Filter):
    """Tells requests that Django refuses as suspicious, such as for a foreign host name, as warnings without traceback.

    Anybody can send them, as many as they like: of each kind a process tells one a minute.
    """

    def __init__(self) -> None:
        super().__init__()
        self._told_at: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.name.startswith("django.security."):
            return True
        if record.created - self._told_at.get(record.name, -REFUSALS_EVERY_S) < REFUSALS_EVERY_S:
            return False
        self._told_at[record.name] = record.created
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        record.exc_info = record.exc_text = None
        record.msg, record.args = record.getMessage()[:LONGEST_REFUSAL], None
        return True


def hide_secrets_of_server() -> None:
    """Keep secrets out of the log of accesses and of errors that the web server itself writes."""
    for name in ("gunicorn.access", "gunicorn.error"):
        logging.getLogger(name).addFilter(WithoutSecrets())
