"""Looks at sessions with the rules of `listening.monitor.flags` and writes down what they find.

Done every half minute for every session that gave a sign of life since it was last looked at, so a flag stands within
a minute. A flag deletes nothing and stops nobody: one that a rule no longer finds stays, marked as not holding. Once a
session has ended its flags are final; only then do standing exclusion rules apply to it.
Public: `flag_sessions`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Count, F, Q, Sum

from listening.models import Answer, Flag, Item, ItemSample, Play, ScreeningResult, Session, Task, Trial
from listening.monitor.exclusions import apply_standing_rules
from listening.monitor.flags import Finding, Record, Timing, findings
from listening.trials.gate import missed_of_gold

CHUNK = 50
# A request may write down a moment before it is stored; what was just seen is looked at once more.
SLACK = timedelta(minutes=2)
HEADPHONE_CHECKS = (ScreeningResult.Kind.HUGGINS, ScreeningResult.Kind.WOODS)
NEEDS_ALL_SAMPLES = frozenset({Task.VERIFIABILITY, Task.LINKABILITY})
STILL_CHECKING = (Session.Step.CONSENT, Session.Step.QUESTIONS, Session.Step.SOUND, Session.Step.HEADPHONES)


def flag_sessions(now: datetime, sessions: Iterable[int] | None = None) -> int:
    """Look at these sessions, or at all that did something since they were last looked at; how many were.

    Previews are not looked at, since nobody counts them, nor who withdrew, of whom nothing is left to look at.
    """
    wanted = Session.objects.filter(is_preview=False).exclude(state=Session.State.WITHDRAWN)
    if sessions is None:
        since = F("flagged_at") - SLACK
        wanted = wanted.filter(Q(flagged_at=None) | Q(last_seen_at__gte=since) | Q(ended_at__gte=since))
    else:
        wanted = wanted.filter(pk__in=list(sessions))
    keys = list(wanted.values_list("pk", flat=True))
    for start in range(0, len(keys), CHUNK):
        _look_at(keys[start : start + CHUNK], now)
    return len(keys)


def _look_at(keys: Sequence[int], now: datetime) -> None:
    """Records are read first and flags written in short transactions after, so that no evaluator waits.

    That they were looked at is written last: what breaks off before is done again.
    """
    sessions = list(Session.objects.filter(pk__in=keys).select_related("study"))
    found = {pk: findings(record) for pk, record in _records(sessions).items()}
    with transaction.atomic():
        _write(found)
    apply_standing_rules([one.pk for one in sessions if one.state != Session.State.ACTIVE])
    Session.objects.filter(pk__in=keys).update(flagged_at=now)


# What the sessions did -----------------------------------------------------------------------------


def _records(sessions: Sequence[Session]) -> dict[int, Record]:
    keys = [one.pk for one in sessions]
    planned = _planned(sessions)
    answers = _answers(keys)
    speech_s = _speech_s(sessions, {row["trial__item"] for rows in answers.values() for row in rows})
    headphones = _headphones(sessions)
    remarks = _remarks(keys)
    return {
        one.pk: Record(
            scale_points=one.study.scale_points,
            planned=planned.get(one.block_id or 0, 0),
            ratings=_ratings(answers[one.pk]),
            timings=_timings(one, answers[one.pk], speech_s),
            gold=_gold(answers[one.pk]),
            headphones=headphones[one.pk],
            remarks=remarks[one.pk],
        )
        for one in sessions
    }


def _planned(sessions: Sequence[Session]) -> dict[int, int]:
    """Trials of each block without practice."""
    blocks = {one.block_id for one in sessions if one.block_id}
    trials = Trial.objects.filter(block__in=blocks).exclude(item__purpose=Item.Purpose.PRACTICE)
    return dict(trials.order_by().values_list("block").annotate(Count("pk")))


def _answers(keys: Sequence[int]) -> dict[int, list[dict[str, Any]]]:
    """The answers of each session in the order in which they came, without practice."""
    answers = Answer.objects.filter(session__in=keys).exclude(trial__item__purpose=Item.Purpose.PRACTICE)
    fields = ("session", "trial", "trial__item", "trial__item__purpose", "trial__item__expected", "task", "rating",
              "received_at", "client_ms", "is_late")  # fmt: skip
    of_session = defaultdict(list)
    for row in answers.order_by("pk").values(*fields):
        of_session[row["session"]].append(row)
    return of_session


def _ratings(answers: Iterable[dict[str, Any]]) -> dict[str, list[int]]:
    ratings = defaultdict(list)
    for row in answers:
        if row["rating"] is not None:
            ratings[row["task"]].append(row["rating"])
    return dict(ratings)


def _speech_s(sessions: Sequence[Session], items: Iterable[int]) -> dict[int, float]:
    """How long the samples are that have to be heard of each item in all, in s: sample B only where it is compared."""
    alone = {one.study_id for one in sessions if not NEEDS_ALL_SAMPLES.intersection(one.study.tasks)}
    samples = ItemSample.objects.filter(item__in=items).exclude(item__study__in=alone, slot="b").order_by()
    return dict(samples.values_list("item").annotate(Sum("stimulus__duration_s")))


@dataclass
class _Span:
    item: int
    received_at: datetime
    told_s: float | None
    is_late: bool


def _timings(session: Session, answers: Iterable[dict[str, Any]], speech_s: dict[int, float]) -> list[Timing]:
    """Of each trial the shorter of what the browser told and what passed here since the trial before.

    Of an answer that waited for a connection only the browser knows how long it took.
    """
    spans: dict[int, _Span] = {}
    for row in answers:
        told = None if row["client_ms"] is None else row["client_ms"] / 1000
        span = spans.setdefault(row["trial"], _Span(row["trial__item"], row["received_at"], told, row["is_late"]))
        span.received_at, span.is_late = row["received_at"], span.is_late or row["is_late"]
        if told is not None:
            span.told_s = max(span.told_s or 0, told)
    timings, before = [], session.trials_started_at
    for span in spans.values():
        passed = None if before is None or span.is_late else (span.received_at - before).total_seconds()
        known = [one for one in (span.told_s, passed) if one is not None]
        if known and span.item in speech_s:
            timings.append(Timing(min(known), speech_s[span.item]))
        before = span.received_at
    return timings


def _gold(answers: Iterable[dict[str, Any]]) -> list[bool]:
    """Of each answered control trial whether every rating was in its right range."""
    rows = [
        (row["trial"], row["trial__item__expected"], row["task"], row["rating"])
        for row in answers
        if row["trial__item__purpose"] == Item.Purpose.GOLD
    ]
    return [not is_missed for is_missed in missed_of_gold(rows)]


def _headphones(sessions: Sequence[Session]) -> dict[int, dict[str, bool]]:
    """By check whether an attempt passed, of sessions that have the checks behind them."""
    over = [one.pk for one in sessions if one.step not in STILL_CHECKING]
    results = ScreeningResult.objects.filter(session__in=over, kind__in=HEADPHONE_CHECKS, is_passed__isnull=False)
    passed: dict[int, dict[str, bool]] = defaultdict(dict)
    for session, kind, is_passed in results.values_list("session", "kind", "is_passed"):
        passed[session][kind] = passed[session].get(kind, False) or bool(is_passed)
    return passed


def _remarks(keys: Sequence[int]) -> dict[int, list[frozenset[str]]]:
    """What was noted about the playbacks of each trial, where anything was."""
    plays = Play.objects.filter(session__in=keys).exclude(remarks=[])
    noted: dict[tuple[int, int], set[str]] = defaultdict(set)
    for session, trial, remarks in plays.values_list("session", "trial", "remarks"):
        noted[session, trial].update(map(str, remarks))
    of_session = defaultdict(list)
    for (session, _), remarks in noted.items():
        of_session[session].append(frozenset(remarks))
    return of_session


# What is written -----------------------------------------------------------------------------------


def _write(found: dict[int, list[Finding]]) -> None:
    """Nothing is written about who withdrew meanwhile: the rows are held until the flags are there."""
    flagged = Session.objects.select_for_update(no_key=True).filter(pk__in=[pk for pk, told in found.items() if told])
    there = set(flagged.exclude(state=Session.State.WITHDRAWN).order_by("pk").values_list("pk", flat=True))
    found = {pk: told for pk, told in found.items() if not told or pk in there}
    kept = Flag.objects.filter(session__in=found).exclude(kind__in=Flag.FOUND_BY_ANALYSIS)
    standing = {(one.session_id, one.kind): one for one in kept}
    new, changed = [], []
    for session, of_session in found.items():
        data = {one.kind: one.data | {"holds": True} for one in of_session}
        for kind, flag in ((flag.kind, flag) for (owner, _), flag in standing.items() if owner == session):
            now_told = data.pop(kind, None) or flag.data | {"holds": False}
            if now_told != flag.data:
                flag.data = now_told
                changed.append(flag)
        new += [Flag(session_id=session, kind=kind, data=told) for kind, told in data.items()]
    Flag.objects.bulk_create(new, ignore_conflicts=True)
    Flag.objects.bulk_update(changed, ["data"])
