"""The trials of a session: who holds which block, which sound is served, which answers are taken."""
