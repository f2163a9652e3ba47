"""Leaves sessions out of the analysis by rules that are data: by a flag, or one named session, each with its reason.

A rule says before what it would do, stands until it is revoked, and deletes nothing. One by flag stands for later
sessions as well. Only sessions that have ended are left out, because until then their flags may change. The block of
a finished session that is left out can be offered again whole; both directions are written to the audit trail with
the coverage before and after. Public: `effect_of`, `create_rule`, `revoke_rule`, `apply_standing_rules`, `rules_of`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Count, Q, QuerySet

from listening.models import Block, Exclusion, ExclusionRule, Flag, Session, Study
from listening.monitor.coverage import Coverage, coverage_of, standing_exclusion, usable_answers
from listening.trials import leases
from portal.core import audit
from portal.jobs.services import NotPossible

State = Session.State
LONGEST_REASON = 400
EXCLUDED, REVOKED, FOLLOWED = "study.sessions_excluded", "study.exclusion_revoked", "study.session_excluded"
DEEDS = (EXCLUDED, REVOKED, FOLLOWED)


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
        """Name, planned answers, usable answers before and after, of each system."""
        after = {row.name: row.total.usable for row in self.after.rows}
        return [(row.name, row.total.planned, row.total.usable, after.get(row.name, 0)) for row in self.before.rows]


def effect_of(study: Study, *, flag: str = "", session: Session | None = None) -> Effect:
    """What a rule by this flag, or for this session, would do now."""
    caught = _caught(study, flag, session).exclude(standing_exclusion())
    keys = tuple(caught.values_list("pk", flat=True))
    return Effect(
        sessions=keys,
        answers=usable_answers(study).filter(session__in=keys, session__state=State.FINISHED).count(),
        blocks=Block.objects.filter(holder__in=keys, is_finished=True).count(),
        before=coverage_of(study),
        after=coverage_of(study, without=keys),
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
    if faults := _faults(study, flag, session, reason):
        raise NotPossible(" ".join(faults))
    effect = effect_of(study, flag=flag, session=session)
    rule = study.exclusion_rules.create(
        flag=flag, session=session, reason=reason.strip(), offers_block_again=offers_block_again, created_by=by
    )
    _exclude(rule, _caught(study, flag, session))
    audit.record(
        EXCLUDED, study, actor=by, rule=rule.pk, because=_cause(rule), reason=rule.reason,
        sessions=len(effect.sessions), before=effect.before.as_data(), after=effect.after.as_data(),
    )  # fmt: skip
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
    before = coverage_of(study)
    rule.revoked_at, rule.revoked_by = now, by
    rule.save(update_fields=["revoked_at", "revoked_by"])
    back = study.sessions.filter(exclusions__rule=rule).exclude(standing_exclusion())
    for session in back:
        _take_back(session)
    audit.record(
        REVOKED, study, actor=by, rule=rule.pk, because=_cause(rule), reason=rule.reason,
        sessions=len(back), before=before.as_data(), after=coverage_of(study).as_data(),
    )  # fmt: skip
    return [session.pk for session in back]


def apply_standing_rules(sessions: Collection[int]) -> int:
    """Let the standing rules by flag catch ended sessions that they have not caught yet; how many were."""
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
    before = coverage_of(rule.study)
    _exclude(rule, [session])
    audit.record(
        FOLLOWED, rule.study, rule=rule.pk, because=_cause(rule), reason=rule.reason, session=session.pk,
        sessions=1, before=before.as_data(), after=coverage_of(rule.study).as_data(),
    )  # fmt: skip
    return True


def rules_of(study: Study) -> QuerySet[ExclusionRule]:
    """The rules of a study, the newest first, each with `caught`: how many sessions it leaves out or left out."""
    rules = study.exclusion_rules.select_related("session", "created_by", "revoked_by")
    return rules.annotate(caught=Count("exclusions")).order_by("-created_at", "-pk")


def _caught(study: Study, flag: str, session: Session | None) -> QuerySet[Session]:
    """The sessions that such a rule leaves out. Who withdrew has nothing left to be left out."""
    ended = study.sessions.filter(is_preview=False).exclude(state__in=[State.ACTIVE, State.WITHDRAWN])
    if session is not None:
        return ended.filter(pk=session.pk)
    return ended.filter(Q(flags__kind=flag, flags__data__holds=True)).order_by("pk")


def _faults(study: Study, flag: str, session: Session | None, reason: str) -> list[str]:
    faults = []
    if not reason.strip():
        faults.append("A reason is needed: it stands beside every result that rests on this.")
    if len(reason.strip()) > LONGEST_REASON:
        faults.append(f"The reason may have at most {LONGEST_REASON} characters.")
    if (session is None) == (flag == ""):
        faults.append("Choose a flag or a session, not both.")
    standing = study.exclusion_rules.filter(revoked_at=None)
    if session is not None:
        faults += _faults_of_session(study, session, standing)
    elif flag and flag not in Flag.Kind.values:
        faults.append(f"There is no flag named {flag[:40]}.")
    elif flag and standing.filter(flag=flag, session=None).exists():
        faults.append("A rule for this flag stands already; revoke it first.")
    return faults


def _faults_of_session(study: Study, session: Session, standing: QuerySet[ExclusionRule]) -> list[str]:
    if session.study_id != study.pk or session.is_preview:
        return ["There is no such session in this study."]
    if session.state == State.ACTIVE:
        return ["This session is still under way; it can be left out once it has ended."]
    if session.state == State.WITHDRAWN:
        return ["This person withdrew: no answer is left that could be left out."]
    if standing.filter(session=session).exists():
        return ["A rule for this session stands already; revoke it first."]
    return []


def _exclude(rule: ExclusionRule, sessions: Iterable[Session]) -> None:
    for session in sessions:
        Exclusion.objects.get_or_create(rule=rule, session=session)
        if rule.offers_block_again and rule.study.state != Study.State.CLOSED:
            leases.release(session, finished=False)


def _take_back(session: Session) -> None:
    """Give a finished session its block back, if that is free."""
    if session.state == State.FINISHED and session.block_id is not None:
        free = Block.objects.filter(pk=session.block_id, holder=None, is_finished=False)
        free.update(holder=session, is_finished=True)


def _cause(rule: ExclusionRule) -> str:
    return f"session {rule.session_id}" if rule.session_id else f"flag {rule.flag}"
