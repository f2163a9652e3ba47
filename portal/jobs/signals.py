"""What other parts of the portal may wait for."""

from django.dispatch import Signal

# Sent with `job` in the transaction in which it succeeded, failed or was cancelled.
job_ended = Signal()
