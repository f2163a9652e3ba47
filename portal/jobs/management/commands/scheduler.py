"""Look after the jobs: take back what dead workers held, send again what the queue lost. `serve` starts it."""

from __future__ import annotations

import logging
import signal
import threading
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import Error, connection

from portal.core.health import require_database
from portal.core.maintenance import find_maintenance
from portal.jobs.scheduler import start_due_tasks, sweep

log = logging.getLogger(__name__)


class Command(BaseCommand):
    help = __doc__

    def handle(self, **options: Any) -> None:
        if not options["skip_checks"]:  # `serve` has prepared the database
            require_database()
        stopping = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopping.set())
        while not stopping.is_set():
            try:
                sweep()
                if find_maintenance() is None:
                    start_due_tasks()
            except Error as error:
                log.warning("The database did not answer (%s); trying again.", error)
                connection.close()
            stopping.wait(settings.SWEEP_EVERY_S)
