"""Taking part ends, and everything that was answered is deleted."""
