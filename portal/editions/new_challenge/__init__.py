"""Making a challenge in steps."""
