"""The Celery application of the portal; its task and what its workers do are in `portal.jobs.tasks`."""

import os

from celery import Celery
from kombu import Exchange, Queue

from portal.core.processes import QUEUES
from portal.jobs import folder_queue

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")

folder_queue.install()
app = Celery("portal")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.task_queues = [Queue(name, Exchange("jobs"), routing_key=name) for name in QUEUES.split(",")]
app.autodiscover_tasks(["portal.jobs"])
