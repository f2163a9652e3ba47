"""The Celery application of the portal; `portal.jobs` holds its only task."""

import os

from celery import Celery
from celery.signals import worker_shutting_down
from kombu import Exchange, Queue

from portal.jobs import folder_queue

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")

folder_queue.install()
app = Celery("portal")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.task_queues = [Queue(name, Exchange("jobs"), routing_key=name) for name in ("io", "cpu", "gpu")]
app.autodiscover_tasks(["portal.jobs"])


@worker_shutting_down.connect
def _release_jobs(**_: object) -> None:
    from portal.jobs.runner import stop_between_items

    stop_between_items()
