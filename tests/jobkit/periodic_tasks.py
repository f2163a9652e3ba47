"""A periodic task that fails where the environment gives it a sentence to fail with."""

import os
from datetime import timedelta

from portal.jobs.scheduler import periodic_task


@periodic_task(every=timedelta(days=1))
def fail_on_demand():
    if told := os.environ.get("TEST_PERIODIC_FAILURE"):
        raise RuntimeError(told)
