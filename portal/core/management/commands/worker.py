"""Start a worker, which runs the jobs of some queues or of all. `serve` starts one for `io` and one for the others."""

from __future__ import annotations

import os
from argparse import ArgumentTypeError
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from portal.core.health import require_database
from portal.core.processes import QUEUES, worker_command


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--queues", default=QUEUES, type=_queues, help=f"queues to serve, such as {QUEUES}")
        parser.add_argument("--processes", type=int, default=settings.WORKER_PROCESSES, help="jobs to run at a time")

    def handle(self, *, queues: str, processes: int, **_: Any) -> None:
        require_database()
        command = worker_command(queues, processes=processes)
        os.execvp(command[0], command)  # noqa: S606 - our own program


def _queues(text: str) -> str:
    if unknown := set(text.split(",")) - set(QUEUES.split(",")):
        raise ArgumentTypeError(f"there is no queue {', '.join(sorted(unknown))}")
    return text
