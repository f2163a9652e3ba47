"""What the studies of tests ask: a further task is none of theirs."""

from listening.tasks import Task

RATED = (Task.VERIFIABILITY, Task.NATURALNESS, Task.INTELLIGIBILITY)
