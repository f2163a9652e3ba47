"""What every run has: start, work, storing, showing, export."""
