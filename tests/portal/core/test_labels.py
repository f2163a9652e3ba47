"""How numbers and reports read on a page."""

from common.packages import describe_missing
from portal.core.labels import missing_line


def test_line_on_what_cannot_run_holds_no_commands():
    lacks = [("World", describe_missing("World", "pyworld")), ("B", ""), ("C", "Its weights are missing.")]
    assert missing_line(lacks) == (
        "Cannot run here: World needs the package pyworld, which is not installed here; C (Its weights are missing)."
    )
    assert missing_line([("B", "")]) == ""
