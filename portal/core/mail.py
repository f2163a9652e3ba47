"""Mail on the console, for a portal without a mail server: who gets it, what about, and the text as it reads."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from django.core.mail.backends.console import EmailBackend as ConsoleBackend
from django.core.mail.message import EmailMessage


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
