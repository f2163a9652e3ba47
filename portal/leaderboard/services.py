"""What an organizer does with a leaderboard: try a policy out, make it live, publish, take back, freeze."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.urls import reverse

from evaluation.protocols.ranking.policy import FIELDS, LeaderboardPolicy, find_changes, policy_as_dict
from portal.accounts.rules import NotificationKind
from portal.challenges.models import Edition
from portal.core import audit
from portal.core.mail import render_mail
from portal.jobs.services import NotPossible
from portal.leaderboard.selectors import policy_by, submissions_on_leaderboard
from portal.submissions.models import Submission
from portal.submissions.services import refuse_removed, release_parts
from portal.teams.models import Team
from portal.teams.notifications import notify_team

FROZEN = "The leaderboard is frozen and must not change; unfreeze it before making another policy live."
FUTURE = "A leaderboard can be frozen as of now or of a time that has passed."


class LeaderboardError(Exception):
    """An action that the state of the leaderboard does not allow; its words are for the organizer."""


@transaction.atomic
def save_draft_policy(*, edition: Edition, policy: LeaderboardPolicy, by: Any) -> Edition:
    """Keep a policy to look at; one that is live already leaves no draft."""
    edition = _locked(edition)
    is_live = policy == policy_by(edition, edition.leaderboard_policy)
    draft = {} if is_live else _whole(policy, edition)
    return _changed(edition, "board.policy-drafted", by, {"policy": draft}, draft_policy=draft)


@transaction.atomic
def discard_draft_policy(*, edition: Edition, by: Any) -> Edition:
    """Forget the draft."""
    edition = _locked(edition)
    return _changed(edition, "board.draft-discarded", by, {"policy": edition.draft_policy}, draft_policy={})


@transaction.atomic
def make_policy_live(*, edition: Edition, by: Any) -> Edition:
    """Rank the leaderboard by the draft from now on.

    Raises:
        LeaderboardError: there is no draft, or the leaderboard is frozen.
    """
    edition = _locked(edition)
    if not edition.draft_policy:
        raise LeaderboardError("There is no draft: the policy that you see is live already.")
    if edition.frozen_at is not None:
        raise LeaderboardError(FROZEN)
    live = find_changes(policy_by(edition, edition.draft_policy), edition.recipe, edition.track)
    told = {"before": edition.leaderboard_policy, "after": live}
    return _changed(edition, "board.policy-live", by, told, leaderboard_policy=live, draft_policy={})


@transaction.atomic
def publish_leaderboard(*, edition: Edition, now: datetime, by: Any, releases: bool = False) -> Edition:
    """Show the leaderboard to everybody and tell each team that stands on it.

    Args:
        releases: whether everybody hears the samples and reads the descriptions that teams offered, too.

    Raises:
        LeaderboardError: it is published already, or a submission is being deleted.
    """
    edition = _locked(edition)
    if edition.published_at is not None:
        raise LeaderboardError("The leaderboard is published already.")
    _refuse_removed(edition)
    teams = _teams_on_leaderboard(edition)
    _changed(edition, "board.published", by, {"teams": [str(team) for team in teams]}, published_at=now)
    if releases:
        release_parts(submissions=submissions_on_leaderboard(edition), by=by, now=now, notifies=False)
    _tell(teams, edition, "published", reverse("leaderboard:detail", args=[edition.name]), by=by, releases=releases)
    return edition


@transaction.atomic
def unpublish_leaderboard(*, edition: Edition, by: Any) -> Edition:
    """Hide the leaderboard from all but its organizers and tell each team that stands on it.

    Raises:
        LeaderboardError: it is not published.
    """
    edition = _locked(edition)
    if edition.published_at is None:
        raise LeaderboardError("The leaderboard is not published.")
    told = {"published_at": edition.published_at.isoformat()}
    _tell(_teams_on_leaderboard(edition), edition, "taken_back", edition.get_absolute_url(), by=by)
    return _changed(edition, "board.unpublished", by, told, published_at=None)


def _tell(teams: Iterable[Team], edition: Edition, news: str, url: str, *, by: Any, releases: bool = False) -> None:
    mail = render_mail(f"leaderboard/mail/{news}.txt", {"edition": edition, "releases": releases})
    for team in teams:
        notify_team(team=team, kind=NotificationKind.PUBLISHED, mail=mail, url=url, besides=by)


@transaction.atomic
def freeze_leaderboard(*, edition: Edition, at: datetime, now: datetime, by: Any) -> Edition:
    """Let the leaderboard rest on what had been evaluated by a time.

    Raises:
        LeaderboardError: the time is still to come, or a submission is being deleted.
    """
    if at > now:
        raise LeaderboardError(FUTURE)
    _refuse_removed(edition)
    return _changed(_locked(edition), "board.frozen", by, {"as_of": at.isoformat()}, frozen_at=at)


@transaction.atomic
def unfreeze_leaderboard(*, edition: Edition, by: Any) -> Edition:
    """Let the leaderboard follow each evaluation again.

    Raises:
        LeaderboardError: it is not frozen.
    """
    edition = _locked(edition)
    if edition.frozen_at is None:
        raise LeaderboardError("The leaderboard is not frozen.")
    return _changed(edition, "board.unfrozen", by, {"as_of": edition.frozen_at.isoformat()}, frozen_at=None)


def _refuse_removed(edition: Edition) -> None:
    try:
        refuse_removed(Submission.objects.filter(system__edition=edition).select_related("system"))
    except NotPossible as reason:
        raise LeaderboardError(str(reason)) from None


def _whole(policy: LeaderboardPolicy, edition: Edition) -> dict[str, Any]:
    """All that an organizer may decide, so that a draft equal to the recipe is not an empty one."""
    values, minima = policy_as_dict(policy), {gate.metric: gate.minimum for gate in policy.gates}
    gates = {gate.metric: minima.get(gate.metric) for gate in policy_by(edition, {}).gates}
    return {name: values[name] for name in FIELDS} | {"gates": gates}


def _changed(edition: Edition, action: str, by: Any, told: Mapping[str, Any], **fields: Any) -> Edition:
    """Write fields of a locked edition, and what was done into the audit log."""
    for name, value in fields.items():
        setattr(edition, name, value)
    edition.save(update_fields=list(fields))
    audit.record(action, edition, actor=by, **told)
    return edition


def _locked(edition: Edition) -> Edition:
    return Edition.objects.select_for_update().get(pk=edition.pk)


def _teams_on_leaderboard(edition: Edition) -> list[Team]:
    teams = {one.system.team_id: one.system.team for one in submissions_on_leaderboard(edition) if one.system.team}
    for team in teams.values():
        team.edition = edition
    return sorted(teams.values(), key=lambda team: (team.number or 0, team.name))
