"""What apps above hear of submissions."""

from django.dispatch import Signal

# In the transaction that accepted a submission of an edition: `submission`, and `by`, who did.
submission_accepted = Signal()
