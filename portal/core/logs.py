"""What a log may not hold: addresses that open something for anyone who knows them."""

from __future__ import annotations

import logging
import re

# Sessions and studies of evaluators, signed audio and figures, invitations, confirmations, passwords to be chosen,
# the first account; in an address that leads on to another one (``?next=``) a slash may be written as %2F.
_OPENS = "listen/join|listen|media|teams/invitations|sign-up/confirm|password|first-account".replace("/", "(?:/|%2F)")
_HARMLESS = "withdraw|mailed|changed|set"
SECRET = re.compile(
    rf"((?:/|%2F)(?:{_OPENS})(?:/|%2F))(?!(?:{_HARMLESS})(?:/|%2F))(?:(?!%2F)[^/\s?&\"'])+", re.IGNORECASE
)


class WithoutSecrets(logging.Filter):
    """Takes the secret part out of addresses in a message."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if SECRET.search(message):
            record.msg, record.args = SECRET.sub(r"\1…", message), None
        return True


def hide_secrets_of_server() -> None:
    """Keep secrets out of the log of accesses and of errors that the web server itself writes."""
    for name in ("gunicorn.access", "gunicorn.error"):
        logging.getLogger(name).addFilter(WithoutSecrets())
