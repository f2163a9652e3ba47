"""Fixtures of the command line's tests."""

from __future__ import annotations

import pytest

from tests.evaluation.commands import Shell


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)
