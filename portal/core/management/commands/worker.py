"""Start a worker, which runs the jobs of some queues or of all. `serve` starts one for short jobs and another."""

from __future__ import annotations

import os
from argparse import ArgumentTypeError
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from portal.core.health import require_database
from portal.core.processes import QUEUES, UNTIL_IDLE, worker_command

IDLE_S = 60


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--queues", default=QUEUES, type=_queues, help=f"queues to serve, such as {QUEUES}")
        parser.add_argument(
            "--processes", type=int, default=settings.WORKER_PROCESSES, help="jobs to run at a time; 0: by the machine"
        )
        parser.add_argument(
            "--until-idle",
            type=_seconds,
            nargs="?",
            const=IDLE_S,
            metavar="SECONDS",
            help=f"end once there was nothing to do for so long ({IDLE_S} s)",
        )

    def handle(self, *, queues: str, processes: int, until_idle: int | None, **_: Any) -> None:
        require_database()
        if until_idle is not None:
            os.environ[UNTIL_IDLE] = str(until_idle)
        command = worker_command(queues, processes=processes)
        os.execvp(command[0], command)  # noqa: S606 - our own program


def _seconds(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 86_400:
        raise ArgumentTypeError(f"expected a whole number of seconds from 1 to 86400, found {text!r}")
    return int(text)


def _queues(text: str) -> str:
    if unknown := set(text.split(",")) - set(QUEUES.split(",")):
        raise ArgumentTypeError(f"there is no queue {', '.join(sorted(unknown))}")
    return text
