"""The process that draws: replaced when it died, ended when it is slow, and asked by few at a time."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from contextlib import contextmanager

import pytest

from common.errors import NotPossible
from portal.core.drawing import DrawingProcess

PICTURE, OTHER = (json.dumps({"picture": f"<?xml {name}"}).encode() + b"\n" for name in ("light", "dark"))


@pytest.fixture(scope="module")
def echo():
    process = DrawingProcess("tests.portal.core.echo", draws_within_s=600, waits_s=600)
    yield process
    process.close()


def test_process_that_died_is_replaced(echo):
    first = echo.draw(PICTURE)
    process = echo._process
    process.kill()
    process.wait()
    assert echo.draw(PICTURE) == first
    assert echo._process.pid != process.pid


def test_line_that_cannot_be_drawn_is_told_and_the_next_is_drawn(echo, capfd):
    with pytest.raises(NotPossible, match="The drawing process ended without a picture"):
        echo.draw(b"{}\n")
    assert "KeyError" in capfd.readouterr().err
    assert echo.draw(PICTURE).startswith(b"<?xml")


def wait_until(holds):
    for _ in range(6000):
        if holds():
            return
        time.sleep(0.01)
    pytest.fail("what was waited for for a minute did not come")


@contextmanager
def stopped(echo):
    """Its process, started and as slow as can be: it does nothing until it is continued."""
    echo.draw(PICTURE)
    process = echo._process
    process.send_signal(signal.SIGSTOP)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGCONT)


def test_process_that_draws_for_too_long_is_ended_and_none_is_asked_again(echo, monkeypatch):
    with stopped(echo) as process, monkeypatch.context() as hasty:
        hasty.setattr(echo, "draws_within_s", 0.1)
        # A second process would end without a picture, too, and be told so.
        with pytest.raises(NotPossible, match=r"^The picture was not drawn within 0\.1 s; ask for it again"):
            echo.draw(PICTURE)
    assert process.returncode == -signal.SIGKILL
    assert echo._process is None
    assert echo.draw(PICTURE).startswith(b"<?xml")


def test_nobody_waits_long_for_a_turn_and_few_wait_at_all(echo, monkeypatch):
    drawn = []
    turns = [threading.Thread(target=lambda: drawn.append(echo.draw(PICTURE))) for _ in range(3)]
    with stopped(echo):
        turns[0].start()
        wait_until(echo._turn.locked)
        with monkeypatch.context() as hasty:
            hasty.setattr(echo, "waits_s", 0.1)
            with pytest.raises(NotPossible, match="Other pictures are drawn first"):
                echo.draw(PICTURE)
        for turn in turns[1:]:
            turn.start()
        wait_until(lambda: echo._places._value == 0)
        with pytest.raises(NotPossible, match="Other pictures are drawn first"):
            echo.draw(PICTURE)  # which would wait for ten minutes
    for turn in turns:
        turn.join()
    assert drawn == [echo.draw(PICTURE)] * 3


def test_answer_that_nobody_waited_for_is_no_later_ones(echo):
    class InterruptError(Exception):
        pass

    def interrupt(*_):
        raise InterruptError

    expected = echo.draw(OTHER)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with stopped(echo):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with pytest.raises(InterruptError):
                echo.draw(PICTURE)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert echo._process is None
    assert echo.draw(OTHER) == expected


def test_child_of_a_fork_draws_by_a_process_of_its_own(echo):
    expected = echo.draw(PICTURE)
    parents = echo._process.pid
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        drawn = echo.draw(PICTURE)
        os.write(writer, b"%d %d" % (drawn == expected, echo._process.pid != parents))
        echo.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 10) == b"1 1"
    assert echo.draw(PICTURE) == expected
    assert echo._process.pid == parents
