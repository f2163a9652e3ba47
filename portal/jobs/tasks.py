"""What Celery knows of the portal: its one task, and the heartbeats of its workers.

The message of a job is a hint; the rows say which one is next (`find_next`) and what there is to do. A worker imports
this module when it starts.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from contextlib import suppress
from typing import Any

from celery import bootsteps, current_app, shared_task
from celery.signals import worker_init, worker_process_shutdown, worker_shutdown, worker_shutting_down
from celery.worker.state import reserved_requests
from django.conf import settings
from django.db import Error, connection

from portal.core.processes import UNTIL_IDLE
from portal.core.sentry import flush_reports
from portal.jobs.models import Job, JobState
from portal.jobs.runner import execute, stop_between_items
from portal.jobs.selectors import is_taken_elsewhere
from portal.jobs.services import RUN_JOB, send
from portal.jobs.turns import find_next
from portal.jobs.workers import become_worker, sign_off, this_capacity, this_worker, write_worker_heartbeat

LOOK_EVERY_S = 60.0
PASS_ON_S = 1.0
log = logging.getLogger(__name__)


@shared_task(name=RUN_JOB)
def run_job(job_id: str) -> None:
    """Run the job of this queue whose turn it is: a message says that there is one more to do, not which comes next."""
    job = Job.objects.filter(pk=job_id).first()
    if job is None:
        return
    ran, capacity = False, this_capacity()
    while not ran and (key := find_next(job.queue, capacity)) is not None:
        ran = execute(key) is not None  # None: another worker was faster
    if ran and settings.JOBS_PER_TEAM and (key := find_next(job.queue)) is not None:
        send(Job.objects.get(pk=key))  # its own message came while its team had no turn
    elif not ran and capacity is not None:
        _pass_on(job.queue)  # what waits needs more than this machine has


def _pass_on(queue: str) -> None:
    """Send the next job of a queue again, for another worker; without one, the scheduler sends it when one has come."""
    if (key := find_next(queue)) is not None:
        waiting = Job.objects.get(pk=key)
        if is_taken_elsewhere(waiting, than=this_worker()):
            time.sleep(PASS_ON_S)
            send(waiting, again=True)


class HeartbeatStep(bootsteps.StartStopStep):
    """The worker's heartbeat, from the loop in which it takes messages: a worker that hangs falls silent."""

    requires = ("celery.worker.consumer.tasks:Tasks",)
    timer: Any = None
    idle_since: float | None = None
    looked_at: float = 0.0
    seems_stuck: bool = False

    def start(self, consumer: Any) -> None:
        self.seems_stuck = False
        self._beat(consumer)
        self.timer = consumer.timer.call_repeatedly(settings.JOB_HEARTBEAT_S, self._beat, (consumer,))

    def stop(self, consumer: Any) -> None:  # noqa: ARG002
        if self.timer:
            self.timer.cancel()

    def _beat(self, consumer: Any) -> None:
        queues, now = consumer.app.amqp.queues.consume_from, time.monotonic()
        look_again = now - self.looked_at > LOOK_EVERY_S
        try:
            write_worker_heartbeat(queues, consumer.controller.concurrency, look_again=look_again)
            self.looked_at = now if look_again else self.looked_at
            if os.environ.get(UNTIL_IDLE):
                self._end_when_idle(list(queues), now)
        except Error as error:
            log.warning("No heartbeat of this worker this time: %s", error)
        finally:
            connection.close()  # the processes that are forked here must not inherit it
        self._require_free_place(consumer)

    def _require_free_place(self, consumer: Any) -> None:
        """Connect again where an idle worker holds a message: Redis was away when it was to be told that the message
        is taken, so its place stays taken, and with all places taken a worker asks for nothing and notices nothing.

        Raises:
            ConnectionError: for Celery, which connects again. This is seen at two heartbeats, so that a message that
                comes at this moment does not count.
        """
        places = getattr(consumer.task_consumer.channel, "qos", None)  # RabbitMQ keeps them itself
        was_stuck, self.seems_stuck = self.seems_stuck, False
        if places is None or not places.prefetch_count or reserved_requests:
            return
        self.seems_stuck = places.can_consume_max_estimate() < places.prefetch_count
        if was_stuck and self.seems_stuck:
            raise ConnectionError("The queue was away when this worker took a message.")

    def _end_when_idle(self, queues: list[str], now: float) -> None:
        """End this worker in order once it had nothing to do for as long as it was told."""
        is_busy = Job.objects.filter(state=JobState.RUNNING, worker=this_worker()).exists()
        if is_busy or any(find_next(queue, this_capacity()) is not None for queue in queues):
            self.idle_since = None
            return
        self.idle_since = now if self.idle_since is None else self.idle_since
        if now - self.idle_since >= float(os.environ[UNTIL_IDLE]):
            os.kill(os.getpid(), signal.SIGTERM)


current_app.steps["consumer"].add(HeartbeatStep)


@worker_init.connect
def _begin(instance: Any = None, **_: object) -> None:
    become_worker(getattr(instance, "concurrency", None) or 1)


@worker_shutting_down.connect
def _release_jobs(**_: object) -> None:
    stop_between_items()


@worker_process_shutdown.connect
def _end_process(**_: object) -> None:
    flush_reports()


@worker_shutdown.connect
def _end(**_: object) -> None:
    with suppress(Error):
        sign_off()
    connection.close()
