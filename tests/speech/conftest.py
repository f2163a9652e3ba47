"""Fixtures of the tests of `speech`."""

from tests.evaluation.conftest import shell  # noqa: F401
