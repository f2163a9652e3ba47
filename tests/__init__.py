"""Assertions of the modules that tests share tell what they compared, as those of tests do."""

import pytest

pytest.register_assert_rewrite("tests.browsing", "tests.evaluation.svg")
