"""Looks at sessions with the rules of `listening.app.monitor.rules`, and leaves sessions out by rules that are data.

Flags are looked for every half minute in every session that gave a heartbeat since, so one stands within a minute.
A flag deletes nothing and stops nobody: one that a rule no longer finds stays, marked as not holding. Once a session
has ended its flags are final; only then do standing exclusion rules apply to it. The first session of a study that ends
without having listened makes the rule that leaves out all such sessions; once it is revoked, none is made again.

An exclusion rule is by a flag, or for one named session, each with its reason. It says before what it would do, stands
until it is revoked, and deletes nothing. One by flag stands for later sessions as well. The block of a finished session
that is left out can be offered again whole; both directions are written to the audit log with the coverage before and
after.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Count, F, Q, QuerySet

from listening.app import models
from listening.app.models import Exclusion, ExclusionRule, Flag, Session, Study
from listening.app.monitor.rules import Record, Timing, findings
from listening.app.monitor.selectors import Coverage, measure_coverage, standing_exclusion, usable_answers
from listening.app.sessions.attention import is_unheard, missed_of_gold, seconds_to_hear
from listening.app.sessions.block_leases import release_block
from listening.app.sessions.pre_screening import CHECKS
from listening.questions import AskedQuestion, Kind
from portal.core import audit
from portal.core.models import AuditEvent
from portal.jobs.services import NotPossible

State = Session.State
LONGEST_REASON = 400
UNHEARD = "Made by the portal: recordings of most trials were not played, by what the browser itself reports."
EXCLUDED, REVOKED, FOLLOWED = "study.sessions_excluded", "study.exclusion_revoked", "study.session_excluded"
ACTIONS = (EXCLUDED, REVOKED, FOLLOWED)
CHUNK = 50
# A request may write down a moment before it is stored; what was just seen is looked at once more.
SLACK = timedelta(minutes=2)
STILL_CHECKING = (Session.Step.CONSENT, Session.Step.QUESTIONS, Session.Step.SOUND, Session.Step.HEADPHONES)


@dataclass(frozen=True)
class Effect:
    """What a rule would leave out, beyond what other rules leave out already. `blocks`: that would be offered again."""

    sessions: tuple[int, ...]
    answers: int
    blocks: int
    before: Coverage
    after: Coverage

    @property
    def changes(self) -> list[tuple[str, int, int, int]]:
        """Return name, planned answers, usable answers before and after, of each system."""
        after = {row.name: row.total.usable for row in self.after.rows}
        return [(row.name, row.total.planned, row.total.usable, after.get(row.name, 0)) for row in self.before.rows]


def preview_effect(study: Study, *, flag: str = "", session: Session | None = None) -> Effect:
    """Return what a rule by this flag, or for this session, would do now."""
    caught = _caught(study, flag, session).exclude(standing_exclusion())
    keys = tuple(caught.values_list("pk", flat=True))
    return Effect(
        sessions=keys,
        answers=usable_answers(study).filter(session__in=keys, session__state=State.FINISHED).count(),
        blocks=models.Block.objects.filter(holder__in=keys, is_finished=True).count(),
        before=measure_coverage(study),
        after=measure_coverage(study, without=keys),
    )


@transaction.atomic
def create_rule(
    *,
    study: Study,
    by: Any,
    reason: str,
    flag: str = "",
    session: Session | None = None,
    offers_block_again: bool = True,
) -> ExclusionRule:
    """Leave out every ended session with a flag that holds, now and later, or one session.

    Raises:
        NotPossible: names everything that is wrong.
    """
    study = Study.objects.select_for_update(no_key=True).get(pk=study.pk)
    if problems := _problems(study, flag, session, reason):
        raise NotPossible(" ".join(problems))
    effect = preview_effect(study, flag=flag, session=session)
    rule = study.exclusion_rules.create(
        flag=flag, session=session, reason=reason.strip(), offers_block_again=offers_block_again, created_by=by
    )
    _exclude(rule, _caught(study, flag, session))
    _record(EXCLUDED, study, rule, effect.before, effect.after, by=by, sessions=len(effect.sessions))
    return rule


@transaction.atomic
def revoke_rule(*, rule: ExclusionRule, by: Any, now: datetime) -> list[int]:
    """Count the sessions of a rule again, unless another rule leaves them out too.

    A session gets its block back if nobody has taken it meanwhile; else two people have rated it, which harms nothing.

    Returns:
        The sessions that count again.

    Raises:
        NotPossible: the rule was revoked before.
    """
    study = Study.objects.select_for_update(no_key=True).get(pk=rule.study_id)
    rule = ExclusionRule.objects.select_for_update(of=("self",)).get(pk=rule.pk)
    if rule.revoked_at is not None:
        raise NotPossible("This rule was revoked already.")
    before = measure_coverage(study)
    rule.revoked_at, rule.revoked_by = now, by
    rule.save(update_fields=["revoked_at", "revoked_by"])
    back = study.sessions.filter(exclusions__rule=rule).exclude(standing_exclusion())
    for session in back:
        _take_back(session)
    _record(REVOKED, study, rule, before, measure_coverage(study), by=by, sessions=len(back))
    return [session.pk for session in back]


def apply_standing_rules(sessions: Collection[int]) -> int:
    """Let the rules by flag that are in force catch ended sessions that they have not caught yet; how many were."""
    ended = Session.objects.filter(pk__in=sessions, flags__data__holds=True)
    studies = set(ended.values_list("study", flat=True))
    rules = ExclusionRule.objects.filter(study__in=studies, revoked_at=None, session=None).select_related("study")
    caught = 0
    for rule in rules:
        new = _caught(rule.study, rule.flag, None).filter(pk__in=sessions).exclude(exclusions__rule=rule)
        caught += sum(_follow(rule, session) for session in list(new))
    return caught


@transaction.atomic
def _follow(rule: ExclusionRule, session: Session) -> bool:
    """Leave the session out, unless the rule was revoked or another scheduler did so just now; whether it was done."""
    rule = ExclusionRule.objects.select_for_update(of=("self",), no_key=True).select_related("study").get(pk=rule.pk)
    if rule.revoked_at is not None or rule.exclusions.filter(session=session).exists():
        return False
    before = measure_coverage(rule.study)
    _exclude(rule, [session])
    _record(FOLLOWED, rule.study, rule, before, measure_coverage(rule.study), session=session.pk)
    return True


def _leave_out_unheard(sessions: Collection[int]) -> None:
    """Make the rule for sessions that cannot have listened, in studies of these that never had one."""
    caught = Flag.objects.filter(session__in=sessions, kind=Flag.Kind.NOT_HEARD, data__holds=True)
    studies = Study.objects.filter(sessions__flags__in=caught).exclude(exclusion_rules__flag=Flag.Kind.NOT_HEARD)
    for study in studies.distinct():
        with suppress(NotPossible):  # another scheduler was first
            create_rule(study=study, by=None, reason=UNHEARD, flag=Flag.Kind.NOT_HEARD)


def list_rules(study: Study) -> QuerySet[ExclusionRule]:
    """Return the rules of a study, the newest first; `caught`: how many sessions each leaves out or left out."""
    rules = study.exclusion_rules.select_related("session", "created_by", "revoked_by")
    return rules.annotate(caught=Count("exclusions")).order_by("-created_at", "-pk")


def list_log(study: Study) -> QuerySet[AuditEvent]:
    """Return what was left out and counted again, newest first."""
    events = AuditEvent.objects.filter(subject_type="listening.study", subject_id=str(study.pk), action__in=ACTIONS)
    return events.select_related("actor").order_by("-at", "-pk")


def _caught(study: Study, flag: str, session: Session | None) -> QuerySet[Session]:
    """Return the sessions that such a rule leaves out. Who withdrew has nothing left to be left out."""
    ended = study.sessions.filter(is_preview=False).exclude(state__in=[State.ACTIVE, State.WITHDRAWN])
    if session is not None:
        return ended.filter(pk=session.pk)
    return ended.filter(Q(flags__kind=flag, flags__data__holds=True)).order_by("pk")


def _problems(study: Study, flag: str, session: Session | None, reason: str) -> list[str]:
    problems = []
    if not reason.strip():
        problems.append("A reason is needed: it is shown with every result that depends on this.")
    if len(reason.strip()) > LONGEST_REASON:
        problems.append(f"The reason may have at most {LONGEST_REASON} characters.")
    if (session is None) == (flag == ""):
        problems.append("Choose a flag or a session, not both.")
    standing = study.exclusion_rules.filter(revoked_at=None)
    if session is not None:
        problems += _problems_of_session(study, session, standing)
    elif flag and flag not in Flag.Kind.values:
        problems.append(f"There is no flag named {flag[:40]}.")
    elif flag and standing.filter(flag=flag, session=None).exists():
        problems.append("A rule for this flag is in force already; revoke it first.")
    return problems


def _problems_of_session(study: Study, session: Session, standing: QuerySet[ExclusionRule]) -> list[str]:
    if session.study_id != study.pk or session.is_preview:
        return ["There is no such session in this study."]
    if session.state == State.ACTIVE:
        return ["This session is still under way; it can be left out once it has ended."]
    if session.state == State.WITHDRAWN:
        return ["This person withdrew: no answer is left that could be left out."]
    if standing.filter(session=session).exists():
        return ["A rule for this session is in force already; revoke it first."]
    return []


def _exclude(rule: ExclusionRule, sessions: Iterable[Session]) -> None:
    for session in sessions:
        Exclusion.objects.get_or_create(rule=rule, session=session)
        if rule.offers_block_again and rule.study.state != Study.State.CLOSED:
            release_block(session, finished=False)


def _take_back(session: Session) -> None:
    """Give a finished session its block back, if that is free."""
    if session.state == State.FINISHED and session.block_id is not None:
        free = models.Block.objects.filter(pk=session.block_id, holder=None, is_finished=False)
        free.update(holder=session, is_finished=True)


def _record(
    action: str, study: Study, rule: ExclusionRule, before: Coverage, after: Coverage, *, by: Any = None, **more: Any
) -> None:
    """Write down what a rule did to how many `sessions`, with the coverage before and after."""
    cause = f"session {rule.session_id}" if rule.session_id else f"flag “{rule.get_flag_display()}”"
    told = {"rule": rule.pk, "because": cause, "reason": rule.reason, "sessions": 1}
    told |= {"before": before.as_data(), "after": after.as_data()}
    audit.record(action, study, actor=by, **told | more)


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
    """Read records first and write flags in short transactions after, so that no evaluator waits.

    That they were looked at is written last: what breaks off before is done again.
    """
    sessions = list(Session.objects.filter(pk__in=keys).select_related("study"))
    found = {pk: findings(record) for pk, record in _records(sessions).items()}
    with transaction.atomic():
        _write(found)
    ended = [one.pk for one in sessions if one.state != Session.State.ACTIVE]
    _leave_out_unheard(ended)
    apply_standing_rules(ended)
    Session.objects.filter(pk__in=keys).update(flagged_at=now)


# What the sessions did -----------------------------------------------------------------------------


def _records(sessions: Sequence[Session]) -> dict[int, Record]:
    keys = [one.pk for one in sessions]
    asked = {pk: study.asked for pk, study in {one.study_id: one.study for one in sessions}.items()}
    planned = _planned(sessions)
    answers = _answers(keys)
    samples = _samples({row["trial__presentation"] for rows in answers.values() for row in rows})
    plays = _plays(keys)
    checks = _checks(sessions)
    notes = _notes(keys)
    return {
        one.pk: Record(
            points={
                question.key: question.ends[1] - question.ends[0] + 1
                for question in asked[one.study_id]
                if question.kind in (Kind.SCALE, Kind.SLIDER)
            },
            planned=planned.get(one.block_id or 0, 0),
            ratings=_ratings(answers[one.pk]),
            timings=_timings(one, answers[one.pk], asked[one.study_id], samples),
            gold=_gold(answers[one.pk]),
            checks=checks[one.pk],
            notes=notes[one.pk],
            unheard=_unheard(answers[one.pk], asked[one.study_id], samples, plays[one.pk]),
        )
        for one in sessions
    }


def _planned(sessions: Sequence[Session]) -> dict[int, int]:
    """Return trials of each block without practice."""
    blocks = {one.block_id for one in sessions if one.block_id}
    trials = models.Trial.objects.filter(block__in=blocks).exclude(
        presentation__purpose=models.Presentation.Purpose.PRACTICE
    )
    return dict(trials.order_by().values_list("block").annotate(Count("pk")))


def _answers(keys: Sequence[int]) -> dict[int, list[dict[str, Any]]]:
    """Return the answers of each session in the order in which they came, without practice."""
    answers = models.Answer.objects.filter(session__in=keys).exclude(
        trial__presentation__purpose=models.Presentation.Purpose.PRACTICE
    )
    fields = (
        *("session", "trial", "trial__presentation", "trial__presentation__purpose", "trial__presentation__expected"),
        *("task", "rating", "data__ratings", "received_at", "client_ms", "is_late"),
    )
    of_session = defaultdict(list)
    for row in answers.order_by("pk").values(*fields):
        of_session[row["session"]].append(row)
    return of_session


def _ratings(answers: Iterable[dict[str, Any]]) -> dict[str, list[int]]:
    """Return by question the ratings or choices, or the ratings on all sliders of a trial after each other."""
    ratings = defaultdict(list)
    for row in answers:
        if row["rating"] is not None:
            ratings[row["task"]].append(row["rating"])
        elif row["data__ratings"]:
            ratings[row["task"]] += row["data__ratings"].values()
    return dict(ratings)


Samples = Mapping[str, float]  # by slot how long its speech lasts, in s


def _samples(items: Iterable[int]) -> dict[int, Samples]:
    """Return the samples of each item."""
    found: dict[int, dict[str, float]] = defaultdict(dict)
    samples = models.PresentationSample.objects.filter(presentation__in=items).order_by()
    for item, slot, seconds in samples.values_list("presentation", "slot", "stimulus__duration_s"):
        found[item][slot] = seconds
    return dict(found)


def _plays(keys: Sequence[int]) -> dict[int, dict[int, list[tuple[str, int, bool]]]]:
    """Return slot, ms heard and whether that was all, of the playbacks of each session and trial."""
    found: dict[int, dict[int, list[tuple[str, int, bool]]]] = defaultdict(lambda: defaultdict(list))
    plays = models.Play.objects.filter(session__in=keys).order_by()
    for session, trial, slot, heard_ms, is_whole in plays.values_list(
        "session", "trial", "slot", "heard_ms", "is_whole"
    ):
        found[session][trial].append((slot, heard_ms, is_whole))
    return found


def _unheard(
    answers: Iterable[dict[str, Any]],
    asked: Sequence[AskedQuestion],
    samples: Mapping[int, Samples],
    plays: Mapping[int, Sequence[tuple[str, int, bool]]],
) -> list[bool]:
    """Return of each answered trial whether less of a recording was played than it needs."""
    tasks: dict[tuple[int, int], list[str]] = defaultdict(list)
    for row in answers:
        tasks[row["trial"], row["trial__presentation"]].append(row["task"])
    return [
        is_unheard([one for one in asked if one.key in answered], samples[item], plays.get(trial, ()))
        for (trial, item), answered in tasks.items()
    ]


def _timings(
    session: Session,
    answers: Iterable[dict[str, Any]],
    asked: Sequence[AskedQuestion],
    samples: Mapping[int, Samples],
) -> list[Timing]:
    """Return of each trial the shorter of what the browser told and what passed here since the trial before.

    Of an answer that waited for a connection only the browser knows how long it took.
    """
    of_trial: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in answers:
        of_trial[row["trial"]].append(row)
    timings, before = [], session.trials_started_at
    for rows in of_trial.values():
        item, received_at = rows[-1]["trial__presentation"], rows[-1]["received_at"]
        told = [row["client_ms"] / 1000 for row in rows if row["client_ms"] is not None]
        known = [max(told)] if told else []
        if before is not None and not any(row["is_late"] for row in rows):
            known.append((received_at - before).total_seconds())
        if known:
            timings.append(Timing(min(known), sum(seconds_to_hear(asked, samples[item]).values())))
        before = received_at
    return timings


def _gold(answers: Iterable[dict[str, Any]]) -> list[bool]:
    """Return of each answered control trial whether every rating was in its right range."""
    rows = [
        (row["trial"], row["trial__presentation__expected"], row["task"], row["rating"])
        for row in answers
        if row["trial__presentation__purpose"] == models.Presentation.Purpose.GOLD
    ]
    return [not is_missed for is_missed in missed_of_gold(rows)]


def _checks(sessions: Sequence[Session]) -> dict[int, dict[str, bool]]:
    """Return by check whether an attempt passed, of sessions that have the checks behind them."""
    over = [one.pk for one in sessions if one.step not in STILL_CHECKING]
    results = models.ScreeningResult.objects.filter(
        session__in=over, kind__in=CHECKS.keys() - {models.ScreeningResult.Kind.SOUND}, is_passed__isnull=False
    )
    passed: dict[int, dict[str, bool]] = defaultdict(dict)
    for session, kind, is_passed in results.values_list("session", "kind", "is_passed"):
        passed[session][kind] = passed[session].get(kind, False) or bool(is_passed)
    return passed


def _notes(keys: Sequence[int]) -> dict[int, list[frozenset[str]]]:
    """Return what was noted about the playbacks of each trial, where anything was."""
    plays = models.Play.objects.filter(session__in=keys).exclude(remarks=[])
    noted: dict[tuple[int, int], set[str]] = defaultdict(set)
    for session, trial, notes in plays.values_list("session", "trial", "remarks"):
        noted[session, trial].update(map(str, notes))
    of_session = defaultdict(list)
    for (session, _), notes in noted.items():
        of_session[session].append(frozenset(notes))
    return of_session


# What is written -----------------------------------------------------------------------------------


def _write(found: Mapping[int, Mapping[str, dict[str, Any]]]) -> None:
    """Write flags, but none of who withdrew meanwhile: the rows are held until the flags are there."""
    flagged = Session.objects.select_for_update(no_key=True).filter(pk__in=[pk for pk, told in found.items() if told])
    there = set(flagged.exclude(state=Session.State.WITHDRAWN).order_by("pk").values_list("pk", flat=True))
    looked_at = [pk for pk, told in found.items() if not told or pk in there]
    caught = {(pk, kind): data for pk in looked_at for kind, data in found[pk].items()}
    keep_flags(caught, Flag.objects.filter(session__in=looked_at).exclude(kind__in=Flag.FOUND_BY_ANALYSIS))


def keep_flags(caught: Mapping[tuple[int, str], dict[str, Any]], among: QuerySet[Flag]) -> None:
    """Write down flags by session and kind; of those there are `among` these, what is not caught holds no longer."""
    standing = {(one.session_id, one.kind): one for one in among}
    changed = []
    for place, flag in standing.items():
        told = caught.get(place, flag.data) | {"holds": place in caught}
        if told != flag.data:
            flag.data = told
            changed.append(flag)
    new = [
        Flag(session_id=session, kind=kind, data=data | {"holds": True})
        for (session, kind), data in caught.items()
        if (session, kind) not in standing
    ]
    Flag.objects.bulk_create(new, ignore_conflicts=True)
    Flag.objects.bulk_update(changed, ["data"])
