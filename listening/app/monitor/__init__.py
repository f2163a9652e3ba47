"""What organizers see of a running study: numbers, flags, exclusions, and the raw export."""
