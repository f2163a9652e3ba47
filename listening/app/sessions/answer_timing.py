"""When an answer may come: a pure rule of its arguments.

Nobody hears faster than speech lasts. What is known for sure is when the first byte of each clip left the server, and
how long the clip lasts. So a person can have heard clip i at end(i) = max(sent(i), end(i - 1)) + duration(i) at the
earliest, in the order in which clips were sent, with end(0) = `since`: the moment up to which the person was busy with
the trials before. With `since` at 0 s, clips of 3 s and 4 s that were sent at 1 s and 2 s end at 4 s and 8 s: an answer
before 8 s, less `TOLERANCE_S`, came too early.

What the browser says about playing is no part of this. Times are aware datetimes, durations seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

TOLERANCE_S = 0.25  # for clocks and for the last samples, which nobody waits for
FETCH_FIRST_S = 1.0  # until asking again where a clip has not been sent completely


@dataclass(frozen=True)
class HeardClip:
    """One clip that has to be heard for an answer; `first_at` is None if it was never sent, not even in part."""

    seconds: float
    first_at: datetime | None
    complete_at: datetime | None


@dataclass(frozen=True)
class TimingVerdict:
    """`wait_s` is 0 where the answer may come now; `heard_at`: earliest end of listening, None if it cannot be."""

    wait_s: float
    heard_at: datetime | None


def judge(clips: Sequence[HeardClip], *, since: datetime, now: datetime) -> TimingVerdict:
    """Return whether somebody who listened since then can have heard all of these clips by now."""
    if any(clip.complete_at is None for clip in clips):
        return TimingVerdict(FETCH_FIRST_S, None)
    heard_at = since
    for first_at, seconds in sorted((clip.first_at or since, clip.seconds) for clip in clips):
        heard_at = max(heard_at, first_at) + timedelta(seconds=seconds)
    wait_s = (heard_at - now).total_seconds() - TOLERANCE_S
    return TimingVerdict(max(0.0, wait_s), heard_at)


def next_since(heard_at: datetime, *, is_late: bool, now: datetime) -> datetime:
    """Return from when the next trial can have been listened to, once this answer is in.

    An answer that comes as it is given ends its trial now. A late one waited for a connection while the person went
    on with what was there already: its trial ended when it can have been heard, so that answers given without a
    connection come in at once, and still nobody is ever ahead of real time.
    """
    return heard_at if is_late else max(heard_at, now)
