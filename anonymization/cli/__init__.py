"""Commands of ``vp``: one module for each command, and what they share."""
