"""Taking an answer: once, whole, not before it can have been heard, and acknowledged only when it is committed.

One request is one transaction that holds the session's row, so that whatever comes at once is taken one after the
other. What is there already stays: the same again is acknowledged again, anything else is refused. Nothing here or in
a reply tells control trials from others; whether they were missed is looked at only at the very end, and the reply is
the same.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.db import transaction
from django.shortcuts import get_object_or_404
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from common.errors import ProblemsError, Refused
from listening.app.models import Answer, Play, Presentation, Serve, Session, SessionEvent, Study
from listening.app.sessions import answer_timing, attention, block_leases, payloads, platforms, selectors
from listening.app.sessions.block_leases import end_session, note
from listening.app.sessions.payloads import Claim, Report, Value
from listening.app.sessions.selectors import PlannedBlock, PlannedTrial, SessionProgress, measure_progress
from listening.app.studies.interface_words import speak
from portal.core.clock import read_clock

MOST_EVENTS_OF_SESSION = 5000
BROKEN, NOTE = "clip-broken", "clip-remark"  # events: a trial skipped for its sound; sound that is wrong, no skip
# Of the trials that may be given up for broken sound in a session that still counts as finished: of a long one a tenth,
# of a short one two, and never as many as half.
MOST_GIVEN_UP = 0.1
FEWEST_GIVEN_UP = 2

# What an answer reads of a session that it neither ends nor gives more time.
READ = (
    *("token", "study", "block", "state", "step", "language", "tab", "skips", "heard_until", "last_seen_at"),
    *("started_at", "consented_at", "trials_started_at"),
)

BEGIN_FIRST = _("The trials have not begun yet. Please reload this page.")
LOCKED = _("This trial was answered before, and answers cannot be changed.")
OTHER_TAB = _("This session goes on in another tab or window. Go on there, or take over here.")
OUT_OF_ORDER = _("Another trial comes first. Please reload this page.")
TOO_EARLY = _("Please listen to the whole recording first.")
ENDED = _("This session is over.")


def _hold_session(token: str) -> Session:
    """Return the session of this address, held until the transaction ends.

    Its study is the one that this process knows, if it does: what is fixed since the launch is all that may be read.

    Raises:
        Http404: there is none.
    """
    session = get_object_or_404(selectors.lock_sessions(Session.objects.only(*READ)), token=token)
    block = selectors.cached_block(session)
    if block is not None:
        session.study = block.study
    return session


def receive_answers(token: str, body: bytes) -> dict[str, Any]:
    """Take the answers about a page of a trial; they come at the time when the session's row is held.

    Returns:
        The acknowledgement, again whenever the same answers come again, and what is next now.

    Raises:
        Http404: nobody has this token.
        Refused: 422 what was sent cannot be an answer; 410 the session is over; 409 another tab writes, the trial is
            locked or not next; 425 nobody can have heard it by now.
    """
    payload = payloads.decode(body)
    with transaction.atomic():
        session = _hold_session(token)
        if len(body) > payloads.MOST_BYTES and session.study.form != Study.Form.LINKABILITY:
            raise ProblemsError([f"The request has more than {payloads.MOST_BYTES >> 10} kB."])
        return _save(session, payload, read_clock())


def _save(session: Session, payload: dict[str, Any], now: datetime) -> dict[str, Any]:
    block, answered = selectors.load_block(session), selectors.answered_by(session)
    claim = _claim(session, block, payload)
    trial = block.trials[claim.position]
    progress = measure_progress(block, answered, session.skips)
    stored = answered.get(trial.trial.pk, {})
    is_repeat = claim.values.keys() <= stored.keys() and _is_same(session, trial, claim.values, stored)
    if session.state != Session.State.ACTIVE:
        if is_repeat:
            return selectors.describe_saved(session, trial, claim.values, progress, answered)
        raise ended(session)
    _require_begun(session)
    _require_tab(session, claim.tab)
    if is_repeat:
        return selectors.describe_saved(session, trial, claim.values, progress, answered)
    if claim.values.keys() & stored.keys():
        raise _refused(session, 409, "locked", LOCKED)
    _require_next(session, trial, claim, stored, progress)
    heard_at = _require_heard(session, trial, claim, stored, now)
    answered[trial.trial.pk] = stored | {task: value.rating for task, value in claim.values.items()}
    progress = progress.after(trial) if len(answered[trial.trial.pk]) == len(block.asked) else progress
    seen_before, session.tab, session.last_seen_at = session.last_seen_at, claim.tab, now
    session.heard_until = answer_timing.next_since(heard_at, is_late=claim.is_late, now=now)
    _keep(session, trial, claim, now)
    if not progress.left or block_leases.is_extension_due(seen_before, now):
        session = selectors.session_for(session.token)
        if not end_if_through(session, progress, now):
            block_leases.extend_lease(session, now)
    return selectors.describe_saved(session, trial, claim.values, progress, answered)


def receive_alive(token: str, body: bytes, now: datetime) -> dict[str, Any]:
    """Note that the page is still open, and what it has to tell.

    Raises:
        Http404: nobody has this token.
        Refused: 422, 410 or 409, as for an answer.
    """
    payload = payloads.decode(body)
    with transaction.atomic():
        session = selectors.session_for(token, lock=True)
        tab, events = payloads.read_alive(payload)
        _require_active(session)
        _require_tab(session, tab)
        _keep_events(session, events)
        session.last_seen_at = now
        session.save(update_fields=["last_seen_at"])
        block_leases.extend_lease_of_open_page(session, now)
        return {"lease_ends_in_s": selectors.lease_seconds_left(session, now)}


def receive_take_over(token: str, body: bytes, now: datetime) -> dict[str, Any]:
    """Let the tab that asks write from now on; the state it goes on from.

    Raises:
        Http404: nobody has this token.
        Refused: 422 or 410, as for an answer.
    """
    payload = payloads.decode(body)
    with transaction.atomic():
        session = selectors.session_for(token, lock=True)
        tab, _told = payloads.read_alive({name: value for name, value in payload.items() if name != "events"})
        _require_active(session)
        block_leases.take_over(session, tab)
        return selectors.describe_state(session, now)


def receive_report(token: str, body: bytes, now: datetime) -> dict[str, Any]:
    """Note that a recording fails, and skip its trial where that is asked: to the end once, given up the second time.

    Who gives up more than a tenth of the trials ends with a technical error, so that nobody comes to the end without
    listening. A report that comes again with the same key changes nothing.

    Raises:
        Http404: nobody has this token.
        Refused: 422, 410 or 409, as for an answer.
    """
    payload = payloads.decode(body)
    with transaction.atomic():
        session = selectors.session_for(token, lock=True)
        report = payloads.read_report(payload)
        notes = session.events.filter(kind__in=(BROKEN, NOTE), is_told=False, data__key=report.key)
        is_repeat = report.key != "" and notes.exists()
        if session.state == Session.State.ACTIVE or not is_repeat:
            _require_active(session)
            _require_begun(session)
            _require_tab(session, report.tab)
        block, answered = selectors.load_block(session), selectors.answered_by(session)
        if not is_repeat:
            _take_report(session, report, block, answered, now)
        progress = measure_progress(block, answered, session.skips)
        told = {"skipped": report.is_skip, "position": report.position}
        return told | selectors.describe_next(session, progress, answered)


def _take_report(
    session: Session, report: Report, block: PlannedBlock, answered: dict[int, dict[str, int | None]], now: datetime
) -> None:
    trial = block.trials.get(report.position)
    if report.is_skip and trial is not measure_progress(block, answered, session.skips).next:
        raise _refused(session, 409, "out-of-order", OUT_OF_ORDER)
    if trial is None or all(report.slot != sample.slot for sample in trial.samples):
        raise ProblemsError(["“slot” names a sample that this trial does not have."])
    if not report.is_skip and not session.serves.filter(trial=trial.trial.pk, slot=report.slot).exists():
        raise _refused(session, 409, "out-of-order", OUT_OF_ORDER)  # nobody can say how it sounds
    session.last_seen_at = now
    session.skips = [*session.skips, report.position] if report.is_skip else session.skips
    session.save(update_fields=["skips", "last_seen_at"])
    kind = BROKEN if report.is_skip else NOTE
    told = {"position": report.position, "slot": report.slot, "what": report.what}
    note(session, kind, **told, **({"key": report.key} if report.key else {}))
    if not report.is_skip:
        return
    progress = measure_progress(block, answered, session.skips)
    if progress.given_up > most_given_up(progress.total):
        end_session(session, Session.State.TECHNICAL, now)
    else:
        end_if_through(session, progress, now)


def most_given_up(total: int) -> int:
    """Return how many trials of a session may be given up for broken sound before it counts as a technical error."""
    return min(max(FEWEST_GIVEN_UP, int(MOST_GIVEN_UP * total)), (total - 1) // 2)


def end_if_through(session: Session, progress: SessionProgress, now: datetime) -> bool:
    """End the session if nothing is left; whether it is. What a control trial shows is looked at here and only here."""
    if progress.left:
        return False
    state = Session.State.FINISHED
    missed, answered = missed_gold(session)
    if attention.fails_attention(missed=missed, answered=answered):
        note(session, "gold-missed", missed=missed, answered=answered)
        if session.study.screening.get("gold_gate") == "gate":
            state = Session.State.FAILED_ATTENTION
    unheard, answered = count_unheard(session)
    if attention.cannot_have_listened(unheard=unheard, answered=answered):
        note(session, platforms.NOT_HEARD, unheard=unheard, answered=answered)
    end_session(session, state, now)
    return True


def count_unheard(session: Session) -> tuple[int, int]:
    """Return how many answered trials the browser says were not played to their end, and how many were answered."""
    plays: dict[int, list[tuple[str, int, bool]]] = defaultdict(list)
    for trial, *play in session.plays.order_by().values_list("trial", "slot", "heard_ms", "is_whole"):
        plays[trial].append(tuple(play))  # type: ignore[arg-type]
    answered, asked = selectors.answered_by(session), {one.key: one for one in session.study.asked}
    trials = [
        one for one in selectors.load_block(session).trials.values() if one.trial.pk in answered and not one.is_practice
    ]
    unheard = 0
    for one in trials:
        of_trial = [asked[key] for key in answered[one.trial.pk]]
        unheard += attention.is_unheard(of_trial, one.seconds, plays[one.trial.pk])
    return unheard, len(trials)


def missed_gold(session: Session) -> tuple[int, int]:
    """Return how many control trials of the session were missed, and how many it has answered."""
    of_gold = session.answers.filter(trial__presentation__purpose=Presentation.Purpose.GOLD)
    missed = attention.missed_of_gold(
        of_gold.values_list("trial_id", "trial__presentation__expected", "task", "rating")
    )
    return sum(missed), len(missed)


def ended(session: Session) -> Refused:
    """Return the refusal of whatever comes after the end."""
    more = {"state": session.state, "address": session.get_absolute_url()}
    return _refused(session, 410, "ended", ENDED, **more)


def _claim(session: Session, block: PlannedBlock, payload: dict[str, Any]) -> Claim:
    position = payloads.find_position(payload)
    trial = None if position is None else block.trials.get(position)
    slots = None if trial is None else [sample.slot for sample in trial.samples]
    try:
        with speak(session.study, session.language):
            return payloads.read_answers(payload, study=session.study, slots=slots)
    except ProblemsError:
        if session.state != Session.State.ACTIVE:
            raise ended(session) from None
        raise


def _is_same(session: Session, trial: PlannedTrial, values: dict[str, Value], stored: dict[str, int | None]) -> bool:
    if any(value.rating is None for value in values.values()):  # written or placed, not rated
        rows = session.answers.filter(trial=trial.trial).values_list("task", "rating", "text", "data")
        return {task: Value(rating, text, data) for task, rating, text, data in rows} == values
    return all(stored[task] == value.rating for task, value in values.items())


def _require_active(session: Session) -> None:
    if session.state != Session.State.ACTIVE:
        raise ended(session)


def _require_begun(session: Session) -> None:
    if session.step != Session.Step.TRIALS:
        raise _refused(session, 409, "out-of-order", BEGIN_FIRST)


def _require_tab(session: Session, tab: str) -> None:
    if session.tab and session.tab != tab:
        raise _refused(session, 409, "other-tab", OTHER_TAB)


def _require_next(
    session: Session, trial: PlannedTrial, claim: Claim, stored: Collection[str], progress: SessionProgress
) -> None:
    asked = [key for key in trial.tasks if key not in stored]
    if progress.next is not trial or claim.values.keys() not in ({asked[0]}, set(asked)):
        raise _refused(session, 409, "out-of-order", OUT_OF_ORDER)


def _require_heard(
    session: Session, trial: PlannedTrial, claim: Claim, stored: Collection[str], now: datetime
) -> datetime:
    """Return when all that this answer is about can have been heard; what an earlier task needed was heard then."""
    asked = {one.key: one for one in session.study.asked}
    needed = attention.seconds_to_hear([asked[key] for key in claim.values], trial.seconds)
    before = attention.seconds_to_hear([asked[key] for key in stored], trial.seconds)
    served = Serve.objects.filter(session_id=session.pk, trial_id=trial.trial.pk).order_by()
    times = {slot: times for slot, *times in served.values_list("slot", "first_at", "complete_at")}
    clips = [
        answer_timing.HeardClip(seconds, *times.get(slot, (None, None)))
        for slot, seconds in needed.items()
        if slot not in before
    ]
    since = session.heard_until or session.trials_started_at or session.consented_at or session.started_at
    verdict = answer_timing.judge(clips, since=since, now=now)
    if verdict.heard_at is None or verdict.wait_s > 0:
        raise _refused(session, 425, "too-early", TOO_EARLY, retry_after_s=math.ceil(verdict.wait_s * 10) / 10)
    return verdict.heard_at


def _keep(session: Session, trial: PlannedTrial, claim: Claim, now: datetime) -> None:
    """Write the answer, what was told about it, and where the session stands with it."""
    common = {"session_id": session.pk, "trial_id": trial.trial.pk}
    of_answer = {"received_at": now, "client_ms": claim.client_ms, "is_late": claim.is_late}
    Answer.objects.bulk_create(
        Answer(**common, task=task, **vars(value), **of_answer) for task, value in claim.values.items()
    )
    Play.objects.bulk_create(Play(**common, **play) for play in claim.plays)
    changed = {name: getattr(session, name) for name in ("tab", "last_seen_at", "heard_until")}
    Session.objects.filter(pk=session.pk).update(**changed)
    _keep_events(session, claim.events, position=claim.position)


def _keep_events(session: Session, events: list[dict[str, Any]], **place: int) -> None:
    """Store what the browser tells, some thousands for a session; who sends more tells nothing new.

    `place`: of the answer that carried them; an event that names its own, such as a clip fetched ahead, keeps that.
    """
    if not events:
        return
    room = max(0, MOST_EVENTS_OF_SESSION - session.events.filter(is_told=True).count())
    SessionEvent.objects.bulk_create(
        SessionEvent(session=session, kind=one["kind"], is_told=True, data=place | one["data"]) for one in events[:room]
    )


def _refused(session: Session, status: int, problem: str, sentence: str | Promise, **more: Any) -> Refused:
    with speak(session.study, session.language):
        return Refused(status, str(sentence), problem=problem, **more)
