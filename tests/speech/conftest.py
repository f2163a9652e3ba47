"""Fixtures of the tests of what hears and speaks."""

from tests.evaluation.conftest import shell  # noqa: F401
