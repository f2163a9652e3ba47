"""Print the address at which the first person creates the operator's account; it replaces earlier addresses."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.accounts.first_account import renew_first_address


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--if-needed", action="store_true", help="print nothing if the portal has an operator")

    def handle(self, *, if_needed: bool, **_: Any) -> None:
        if address := renew_first_address():
            self.stdout.write("Make your account here, as operator and organizer; the address works once:")
            self.stdout.write(f"  {address}")
            self.stdout.flush()
        elif not if_needed:
            raise CommandError(
                "This portal has an operator, who invites others on the page People. "
                "If you forgot the password, choose a new one on the log-in page, or run "
                f"{settings.PROGRAM} changepassword."
            )
