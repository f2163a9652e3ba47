"""Which jobs evaluate a submission by itself, and the original speech of its edition."""
