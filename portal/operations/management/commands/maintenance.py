"""Turn maintenance mode on or off on all machines, or say which it is: no visitors, and workers take no new job."""

from __future__ import annotations

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from portal.core.clock import read_clock
from portal.core.health import require_database
from portal.core.labels import duration
from portal.core.maintenance import LOOK_EVERY_S, find_maintenance
from portal.operations import maintenance

ASK_EVERY_S = 1.0
LONGEST_MESSAGE = 500


class Command(BaseCommand):
    help = __doc__
    # It has to work just before an upgrade and just after it, whatever else is in order.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("state", nargs="?", choices=("on", "off"), help="without it: say which it is")
        parser.add_argument("--message", default="", help="a sentence for visitors, such as until when")
        parser.add_argument("--wait", action="store_true", help="with on: wait until no job runs any more")

    def handle(self, *, state: str | None, message: str, wait: bool, **_: Any) -> None:
        require_database()
        if state == "on":
            maintenance.begin_maintenance(message=message.strip()[:LONGEST_MESSAGE], now=read_clock())
            self.stdout.write(f"Visitors get the page of maintenance within {LOOK_EVERY_S:.0f} s. No new job starts.")
        elif state == "off":
            self._say_end(maintenance.end_maintenance(now=read_clock()))
            return
        found = find_maintenance()
        if found is None:
            self.stdout.write("Maintenance mode is off.")
            return
        if state is None:
            since = duration(read_clock() - found.since)
            self.stdout.write(f"Maintenance mode has been on for {since}. {found.message}".strip())
        self._say_running(wait=wait)

    def _say_end(self, ended: Any) -> None:
        self.stdout.write(
            "Maintenance mode was off already."
            if ended is None
            else f"Maintenance mode is off after {duration(read_clock() - ended.since)}. Jobs go on within seconds."
        )

    def _say_running(self, *, wait: bool) -> None:
        told = -1
        while (running := maintenance.count_running()) and (wait or told < 0):
            if running != told:
                self.stdout.write(f"{running} jobs are still running." if running > 1 else "1 job is still running.")
                self.stdout.flush()
                told = running
            if wait:
                time.sleep(ASK_EVERY_S)
        if not running:
            self.stdout.write("No job is running.")
