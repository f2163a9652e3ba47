"""What other parts of the portal may wait for."""

from django.dispatch import Signal

# Sent with `submission` in the transaction that accepts it; evaluation then begins.
submission_accepted = Signal()
