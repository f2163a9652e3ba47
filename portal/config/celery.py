"""The Celery application of the portal; `portal.jobs` holds its only task."""

import logging
import os
from contextlib import suppress
from typing import Any

from celery import Celery, bootsteps
from celery.signals import worker_init, worker_shutdown, worker_shutting_down
from kombu import Exchange, Queue

from portal.jobs import folder_queue

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")
log = logging.getLogger(__name__)


class Pulse(bootsteps.StartStopStep):
    """The worker's sign of life, from the loop in which it takes messages: a worker that hangs falls silent."""

    requires = ("celery.worker.consumer.tasks:Tasks",)
    timer: Any = None

    def start(self, consumer: Any) -> None:
        from django.conf import settings

        self._beat(consumer)
        self.timer = consumer.timer.call_repeatedly(settings.JOB_HEARTBEAT_S, self._beat, (consumer,))

    def stop(self, consumer: Any) -> None:  # noqa: ARG002
        if self.timer:
            self.timer.cancel()

    def _beat(self, consumer: Any) -> None:
        from django.db import Error, connection

        from portal.jobs.workers import leave_sign

        try:
            leave_sign(app.amqp.queues.consume_from, consumer.controller.concurrency)
        except Error as error:
            log.warning("No sign of life of this worker this time: %s", error)
        finally:
            connection.close()  # the processes that are forked here must not inherit it


folder_queue.install()
app = Celery("portal")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.task_queues = [Queue(name, Exchange("jobs"), routing_key=name) for name in ("io", "cpu", "gpu")]
app.autodiscover_tasks(["portal.jobs"])
app.steps["consumer"].add(Pulse)


@worker_init.connect
def _begin(**_: object) -> None:
    from portal.jobs.workers import become_worker

    become_worker()


@worker_shutting_down.connect
def _release_jobs(**_: object) -> None:
    from portal.jobs.runner import stop_between_items

    stop_between_items()


@worker_shutdown.connect
def _end(**_: object) -> None:
    from django.db import Error, connection

    from portal.jobs.workers import sign_off

    with suppress(Error):
        sign_off()
    connection.close()
