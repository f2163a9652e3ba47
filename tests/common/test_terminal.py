"""The bar of a long command, and the words for how long it takes."""

from __future__ import annotations

import io

import pytest

from common.terminal import ProgressBar, format_duration


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("rich.console.monotonic", lambda: now[0])
    return now


def test_bar_is_drawn_on_a_terminal_and_ends_full(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")
    with ProgressBar(is_kept=True) as bar:
        for done in range(4):
            bar.show("utterances", done, 3)
    drawn = terminal.getvalue().split("\r")
    finished = "\x1b[38;2;114;156;31m" + "━" * 30 + "\x1b[0m"
    assert drawn[1].endswith("━" * 30 + "\x1b[0m 0/3 utterances")
    assert finished not in drawn[1]
    assert f"{finished} 3/3 utterances\n" in drawn[-1]


def test_file_gets_a_line_each_half_minute_with_an_estimate(clock, capsys):
    with ProgressBar(lines="minutes") as bar:
        for done in range(5):
            clock[0] = 20.0 * done
            bar.show("utterances", done, 8)
    assert capsys.readouterr().err.splitlines() == ["2/8 utterances · 2 min left", "4/8 utterances · 80 s left"]


@pytest.mark.parametrize(
    ("lines", "expected"), [("none", []), ("minutes", []), ("stages", ["One"]), ("quarters", ["One: 0 % of 2 kB"])]
)
def test_file_gets_the_lines_that_were_asked_for(lines, expected, capsys):
    with ProgressBar(lines=lines, in_bytes=True) as bar:
        for done in (0, 10):
            bar.show("One", done, 2000)
    assert capsys.readouterr().err.splitlines() == expected


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.2, "0 s"), (89, "89 s"), (120, "2 min"), (5000, "83 min"), (9000, "2.5 h")]
)
def test_duration_in_words(seconds, words):
    assert format_duration(seconds) == words
