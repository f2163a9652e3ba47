"""The bar of a long command, and the words for how long it takes."""

from __future__ import annotations

import io

import pytest

from anonymization.cli.progress import Progress, format_duration


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_bar_is_drawn_on_a_terminal_and_ends_full(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")
    with Progress(3, "utterances") as progress:
        for _ in range(3):
            progress.add(is_new=True, speech_s=2.0)
    drawn = terminal.getvalue().split("\r")
    finished = "\x1b[38;2;114;156;31m" + "━" * 30 + "\x1b[0m"
    assert drawn[1].endswith("━" * 30 + "\x1b[0m 0/3 utterances")
    assert finished not in drawn[1]
    assert f"{finished} 3/3 utterances\n" in drawn[-1]


def test_bar_estimates_from_what_is_new(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with Progress(1000, "utterances") as progress:
        for _ in range(30):
            progress.add(is_new=False, speech_s=2.0)
        assert " left" not in progress._words()
        for _ in range(30):
            progress.add(is_new=True, speech_s=2.0)
        assert progress._words().startswith("60/1,000 utterances · ")
        assert progress._words().endswith(" left")


def test_file_gets_no_line_of_a_short_command(monkeypatch):
    file = io.StringIO()
    monkeypatch.setattr("sys.stderr", file)
    with Progress(2, "utterances") as progress:
        progress.add(is_new=True, speech_s=2.0)
    assert file.getvalue() == ""


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.2, "0 s"), (89, "89 s"), (120, "2 min"), (5000, "83 min"), (9000, "2.5 h")]
)
def test_duration_in_words(seconds, words):
    assert format_duration(seconds) == words
