"""What Celery knows of the portal: its one task, and the signs of life of its workers.

The message of a job is a hint; the rows say which one is next (`find_next`) and what there is to do. A worker imports
this module when it starts.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any

from celery import bootsteps, current_app, shared_task
from celery.signals import worker_init, worker_shutdown, worker_shutting_down
from django.conf import settings
from django.db import Error, connection

from portal.jobs.models import Job
from portal.jobs.runner import execute, stop_between_items
from portal.jobs.selectors import find_next
from portal.jobs.services import RUN_JOB, send
from portal.jobs.workers import become_worker, leave_sign, sign_off

log = logging.getLogger(__name__)


@shared_task(name=RUN_JOB)
def run_job(job_id: str) -> None:
    """Run the job of this queue whose turn it is: a message says that there is one more to do, not which comes next."""
    job = Job.objects.filter(pk=job_id).first()
    ran = False
    while job is not None and not ran and (key := find_next(job.queue)) is not None:
        ran = execute(key) is not None  # None: another worker was faster
    if job is not None and ran and settings.JOBS_PER_TEAM and (key := find_next(job.queue)) is not None:
        send(Job.objects.get(pk=key))  # its own message came while its team had no turn


class Pulse(bootsteps.StartStopStep):
    """The worker's heartbeat, from the loop in which it takes messages: a worker that hangs falls silent."""

    requires = ("celery.worker.consumer.tasks:Tasks",)
    timer: Any = None

    def start(self, consumer: Any) -> None:
        self._beat(consumer)
        self.timer = consumer.timer.call_repeatedly(settings.JOB_HEARTBEAT_S, self._beat, (consumer,))

    def stop(self, consumer: Any) -> None:  # noqa: ARG002
        if self.timer:
            self.timer.cancel()

    def _beat(self, consumer: Any) -> None:
        try:
            leave_sign(consumer.app.amqp.queues.consume_from, consumer.controller.concurrency)
        except Error as error:
            log.warning("No heartbeat of this worker this time: %s", error)
        finally:
            connection.close()  # the processes that are forked here must not inherit it


current_app.steps["consumer"].add(Pulse)


@worker_init.connect
def _begin(**_: object) -> None:
    become_worker()


@worker_shutting_down.connect
def _release_jobs(**_: object) -> None:
    stop_between_items()


@worker_shutdown.connect
def _end(**_: object) -> None:
    with suppress(Error):
        sign_off()
    connection.close()
