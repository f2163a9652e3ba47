"""Start the portal on this machine: web server, workers and scheduler, ended together by one Ctrl-C."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand

from portal.core.processes import Supervisor, hold, portal_processes, prepare, require_free


class Command(BaseCommand):
    help = __doc__

    def handle(self, **_: Any) -> None:
        address = settings.ADDRESS
        with hold(settings.DATA_DIR, address):
            require_free(address)
            prepare()
            self._say(f"The portal opens at http://{address}/ (Ctrl-C ends it)")
            call_command("first_account", if_needed=True, stdout=self.stdout)
            processes = portal_processes(
                address, web_threads=settings.WEB_THREADS, worker_processes=settings.WORKER_PROCESSES
            )
            Supervisor(processes, self._say).run()

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
