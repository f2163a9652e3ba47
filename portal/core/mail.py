"""Mail: on the console where there is no mail server, and the addresses of the portal that stand in it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from smtplib import SMTPException
from typing import Any, NamedTuple
from urllib.parse import urljoin

from django.conf import settings
from django.core.mail.backends.console import EmailBackend as ConsoleBackend
from django.core.mail.message import EmailMessage

from portal.core.texts import render_text

NOT_SENT = (SMTPException, OSError)


class ReadableConsoleBackend(ConsoleBackend):
    """Prints each message as a person reads it; Django's own prints it as servers encode it."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        with self._lock:
            for message in email_messages:
                head = f"Mail to {', '.join(message.recipients())}: {message.subject}"
                body = textwrap.indent(str(message.body).strip(), "  | ")
                self.stream.write(f"{head}\n{body}\n")
                self.stream.flush()  # each as a whole: processes that share a console do not mix their lines
        return len(email_messages)


class Mail(NamedTuple):
    """A mail in plain text, without its readers."""

    subject: str
    text: str


def render_mail(template: str, context: Mapping[str, Any]) -> Mail:
    """Return a mail from a template in plain text: its first line is the subject."""
    subject, _, text = render_text(template, context).partition("\n")
    return Mail(subject.strip(), re.sub(r"\n{3,}", "\n\n", text.strip()))


def sends_mail() -> bool:
    """Return whether there is a mail server; without one mails are lines of the log."""
    return bool(settings.MAIL_SERVER)


def if_mailed(words: str, otherwise: str = "") -> str:
    """Return words that promise a mail, where the portal sends any."""
    return words if sends_mail() else otherwise


def absolute(path: str) -> str:
    """Return the whole address of a path of this portal, such as ``/editions/``."""
    return urljoin(settings.SITE_URL, path)
