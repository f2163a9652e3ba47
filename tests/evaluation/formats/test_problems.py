"""What a problem says of a stranger's file: short enough for a page, and nothing that a terminal would obey."""

from common.problems import SHOWN_CHARACTERS, Problem


def found(text):
    return Problem("unknown-line", "results.txt", "a result", text, "Restore the file.").found


def test_quoted_text_is_cut():
    assert found("x" * 200_000) == "x" * (SHOWN_CHARACTERS - 1) + "…"
    assert found("x" * SHOWN_CHARACTERS) == "x" * SHOWN_CHARACTERS


def test_signs_that_steer_are_escaped():
    assert found("\x1b[31mred\x9b2J\n\u202egnp\u2028") == "\\x1b[31mred\\x9b2J\\n\\u202egnp\\u2028"
    assert found("“ρF0” – 16 kHz, 𝒳, é") == "“ρF0” – 16 kHz, 𝒳, é"


def test_what_was_shown_once_stays_as_it_is():
    shown = found("\x1b" * 1000)
    assert (found(shown), len(shown)) == (shown, SHOWN_CHARACTERS)
