"""What an organizer does with a board: try out a policy, make it live, publish, take back, freeze as of a time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.urls import reverse

from evaluation.protocols.board_policy import FIELDS, BoardPolicy, changes_of, policy_as_dict
from portal.accounts.notice_kinds import NoticeKind
from portal.challenges.models import Edition
from portal.core import audit
from portal.results.board import policy_by, submissions_on_board
from portal.teams.models import Team
from portal.teams.notices import notify_team, was_told

TOLD_ONCE_IN = timedelta(days=1)  # a board that is taken back and published again is no news


FUTURE = "A board can be frozen as of now or of a time that has passed."


class BoardError(Exception):
    """A deed that the state of the board does not allow; its words are for the organizer."""


@transaction.atomic
def save_draft_policy(*, edition: Edition, policy: BoardPolicy, by: Any) -> Edition:
    """Keep a policy to look at; one that is live already leaves no draft."""
    edition = _locked(edition)
    is_live = policy == policy_by(edition, edition.board_policy)
    edition.draft_policy = {} if is_live else _whole(policy, edition)
    edition.save(update_fields=["draft_policy"])
    audit.record("board.policy-drafted", edition, actor=by, policy=edition.draft_policy)
    return edition


@transaction.atomic
def discard_draft_policy(*, edition: Edition, by: Any) -> Edition:
    """Forget the draft."""
    edition = _locked(edition)
    draft, edition.draft_policy = edition.draft_policy, {}
    edition.save(update_fields=["draft_policy"])
    audit.record("board.draft-discarded", edition, actor=by, policy=draft)
    return edition


@transaction.atomic
def make_policy_live(*, edition: Edition, by: Any) -> Edition:
    """Rank the board by the draft from now on.

    Raises:
        BoardError: there is no draft.
    """
    edition = _locked(edition)
    if not edition.draft_policy:
        raise BoardError("There is no draft: the policy that you see is live already.")
    before = edition.board_policy
    live = policy_by(edition, edition.draft_policy)
    edition.board_policy, edition.draft_policy = changes_of(live, edition.recipe, edition.track), {}
    edition.save(update_fields=["board_policy", "draft_policy"])
    audit.record("board.policy-live", edition, actor=by, before=before, after=edition.board_policy)
    return edition


@transaction.atomic
def publish_board(*, edition: Edition, now: datetime, by: Any) -> Edition:
    """Show the board to everybody and tell each team that stands on it.

    Raises:
        BoardError: it is published already.
    """
    edition = _locked(edition)
    if edition.published_at is not None:
        raise BoardError("The board is published already.")
    edition.published_at = now
    edition.save(update_fields=["published_at"])
    teams = _teams_on_board(edition)
    audit.record("board.published", edition, actor=by, teams=[str(team) for team in teams])
    for team in teams:
        if was_told(team, NoticeKind.PUBLISHED, since=now - TOLD_ONCE_IN):
            continue
        notify_team(
            team=team,
            kind=NoticeKind.PUBLISHED,
            subject="The board is published",
            lines=[
                f"The board of {edition} is public now, with the systems of your team on it.",
                "It states ranks, intervals, the method, and why a system has no rank where it has none.",
            ],
            url=reverse("boards:detail", args=[edition.name]),
        )
    return edition


@transaction.atomic
def unpublish_board(*, edition: Edition, by: Any) -> Edition:
    """Hide the board from all but its organizers.

    Raises:
        BoardError: it is not published.
    """
    edition = _locked(edition)
    if edition.published_at is None:
        raise BoardError("The board is not published.")
    since, edition.published_at = edition.published_at, None
    edition.save(update_fields=["published_at"])
    audit.record("board.unpublished", edition, actor=by, published_at=since.isoformat())
    return edition


@transaction.atomic
def freeze_board(*, edition: Edition, at: datetime, now: datetime, by: Any) -> Edition:
    """Let the board rest on what had been evaluated by a time.

    Raises:
        BoardError: the time is still to come.
    """
    if at > now:
        raise BoardError(FUTURE)
    edition = _locked(edition)
    edition.frozen_at = at
    edition.save(update_fields=["frozen_at"])
    audit.record("board.frozen", edition, actor=by, as_of=at.isoformat())
    return edition


@transaction.atomic
def unfreeze_board(*, edition: Edition, by: Any) -> Edition:
    """Let the board follow each evaluation again.

    Raises:
        BoardError: it is not frozen.
    """
    edition = _locked(edition)
    if edition.frozen_at is None:
        raise BoardError("The board is not frozen.")
    since, edition.frozen_at = edition.frozen_at, None
    edition.save(update_fields=["frozen_at"])
    audit.record("board.unfrozen", edition, actor=by, as_of=since.isoformat())
    return edition


def _whole(policy: BoardPolicy, edition: Edition) -> dict[str, Any]:
    """All that an organizer may decide, so that a draft equal to the recipe is not an empty one."""
    values, minima = policy_as_dict(policy), {gate.metric: gate.minimum for gate in policy.gates}
    gates = {gate.metric: minima.get(gate.metric) for gate in policy_by(edition, {}).gates}
    return {name: values[name] for name in FIELDS} | {"gates": gates}


def _locked(edition: Edition) -> Edition:
    return Edition.objects.select_for_update().get(pk=edition.pk)


def _teams_on_board(edition: Edition) -> list[Team]:
    teams = {one.system.team_id: one.system.team for one in submissions_on_board(edition) if one.system.team}
    for team in teams.values():
        team.edition = edition
    return sorted(teams.values(), key=lambda team: (team.number or 0, team.name))
