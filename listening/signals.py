"""What other parts of the listening test may wait for."""

from django.dispatch import Signal

# Sent with `study` in the transaction in which it was closed.
study_closed = Signal()
# Sent with `study` in the transaction in which answers of somebody who withdrew were deleted.
answers_deleted = Signal()
