"""A small app for tests: kinds of jobs that leave traces, wait, fail and die on demand."""
