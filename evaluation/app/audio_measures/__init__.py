"""What is measured on the recordings themselves: pitch, naturalness, damage."""
