"""The jobs of what is deleted go with it."""

from portal.core.removal import declare_owned
from portal.jobs.models import Job

declare_owned(Job)
