"""Start the web server alone, at PORTAL_ADDRESS; workers and scheduler run elsewhere. `serve` starts all of them."""

from __future__ import annotations

import os
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from portal.core.health import require_database
from portal.core.processes import collect_static_files, require_free, web_command


class Command(BaseCommand):
    help = __doc__

    def handle(self, **_: Any) -> None:
        require_free(settings.ADDRESS)
        require_database()
        collect_static_files()
        command = web_command(settings.ADDRESS, threads=settings.WEB_THREADS)
        os.execvp(command[0], command)  # noqa: S606 - our own program
