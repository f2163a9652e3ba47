"""Assertions of the modules that tests share tell what they compared, as those of tests do."""

import sys

if "pytest" in sys.modules:  # the programs that tests start have nothing to compare, and need not load it
    import pytest

    pytest.register_assert_rewrite("tests.browsing", "tests.evaluation.svg")
