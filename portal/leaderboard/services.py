"""What an organizer does with a leaderboard: change what it computes and ranks by, publish, take back, freeze."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.urls import reverse

from common.errors import NotPossible, ProblemsError
from evaluation.app.models import MetricValue
from evaluation.app.objective_results.services import start_again
from evaluation.app.runs.kinds import OBJECTIVE
from evaluation.app.submission_evaluation.services import start_originals
from evaluation.metrics.catalogue import find_metric
from evaluation.objective_results.values import AVERAGE
from evaluation.protocols.ranking.policy import LeaderboardPolicy, find_changes
from evaluation.protocols.recipe_changes import find_obstacles
from evaluation.protocols.recipes import Recipe, Track, load_recipe
from evaluation.protocols.tracks import narrow_to_track
from portal.accounts.rules import NotificationKind
from portal.challenges.models import FOLLOWED, Edition
from portal.challenges.rules import read_recipe_text
from portal.challenges.selectors import has_submissions
from portal.core import audit
from portal.core.mail import render_mail
from portal.leaderboard.changes import RECIPE_CHANGED, describe_change
from portal.leaderboard.selectors import submissions_on_leaderboard
from portal.submissions.models import Submission
from portal.submissions.services import refuse_deleted, release_parts
from portal.teams.models import Team
from portal.teams.notifications import notify_team
from portal.teams.services import lock_edition

NO_SUBMISSION = "Nothing was submitted yet, so the recipe itself can be changed: on the page “Edit” of the edition."
UNCHANGED = "This is what the leaderboard computes and ranks by already: change something, or go back."
FOLLOWS: dict[str, Any] = {"published_recipe": {}, "recipe_changed_at": None}  # the leaderboard shows the recipe of now
FUTURE = "A leaderboard can be frozen as of now or of a time that has passed."


@transaction.atomic
def change_policy(*, edition: Edition, policy: LeaderboardPolicy, now: datetime, by: Any) -> Edition:
    """Rank by another policy; a published leaderboard stays as it is until it is published again.

    Raises:
        NotPossible: nothing would change.
    """
    edition = lock_edition(edition)
    return _follow(edition, now, by, leaderboard_policy=find_changes(policy, edition.recipe, edition.track))


@transaction.atomic
def change_recipe(*, edition: Edition, text: str = "", protocol: str = "", now: datetime, by: Any) -> Edition:
    """Compute and rank by another recipe, and evaluate by it again what was evaluated.

    A published leaderboard stays as it is until it is published again.

    Args:
        text: the recipe, unless `protocol` names a shipped one.

    Raises:
        NotPossible: nothing was submitted, nothing would change, or a submission is being deleted.
        ValidationError: every reason why the recipe cannot be computed from what was submitted.
    """
    edition = lock_edition(edition)
    if not has_submissions(edition):
        raise NotPossible(NO_SUBMISSION)
    _refuse_deleted(edition)
    try:
        recipe = load_recipe(protocol) if protocol else read_recipe_text(text, file=f"{edition.name}.toml")
    except ProblemsError as error:
        raise ValidationError({"recipe_text": list(error.problems)}) from None
    problems = find_obstacles(edition.recipe, narrow_to_track(recipe, edition.track), edition.track)
    if problems := problems or _find_unmeasured(edition, recipe):
        raise ValidationError({"recipe_text": problems})
    text = "" if protocol else text
    fields = {"protocol": protocol, "recipe_text": text, "leaderboard_policy": {}}
    edition = _follow(edition, now, by, **fields, recipe_number=edition.recipe_number + 1)
    states = (Submission.State.EVALUATED, Submission.State.WITHDRAWN)  # what is being evaluated follows by itself
    submissions = list(Submission.objects.filter(system__edition=edition, state__in=states).select_related("system"))
    for one in submissions:
        one.system.edition = edition
    start_again(submissions=submissions, by=by)
    if baseline := next((one for one in submissions if one.system.is_baseline), None):
        start_originals(submission=baseline, by=by)
    return edition


def _follow(edition: Edition, now: datetime, by: Any, **fields: Any) -> Edition:
    """Write what a locked edition computes and ranks by; a published leaderboard keeps what it followed."""
    former = copy(edition)
    for name, value in fields.items():
        setattr(edition, name, value)
    edition.__dict__.pop("recipe", None)
    before, after = describe_change(former, edition)
    if not before and not after:
        raise NotPossible(UNCHANGED)
    if edition.published_at is not None and edition.recipe_changed_at is None:
        fields["published_recipe"] = {name: getattr(former, name) for name in FOLLOWED}
        fields["recipe_changed_at"] = now
    return _changed(edition, RECIPE_CHANGED, by, {"before": before, "after": after}, **fields)


@transaction.atomic
def publish_leaderboard(*, edition: Edition, now: datetime, by: Any, releases: bool = False) -> Edition:
    """Show the leaderboard to everybody and tell each team that stands on it.

    After a change of the recipe a published one is published again, by the recipe of now.

    Args:
        releases: whether everybody hears the samples and reads the descriptions that teams offered, too.

    Raises:
        NotPossible: it is published already, or a submission is being deleted.
    """
    edition = lock_edition(edition)
    is_again = edition.recipe_changed_at is not None
    if edition.published_at is not None and not is_again:
        raise NotPossible("The leaderboard is published already.")
    _refuse_deleted(edition)
    teams = _teams_on_leaderboard(edition)
    told, news = {"teams": [str(team) for team in teams]}, "published_again" if is_again else "published"
    _changed(edition, f"board.{news}", by, told, published_at=now, **FOLLOWS)
    if releases:
        release_parts(submissions=submissions_on_leaderboard(edition), by=by, now=now, notifies=False)
    _tell(teams, edition, news, reverse("leaderboard:detail", args=[edition.name]), by=by, releases=releases)
    return edition


@transaction.atomic
def unpublish_leaderboard(*, edition: Edition, by: Any) -> Edition:
    """Hide the leaderboard from all but its organizers and tell each team that stands on it.

    Raises:
        NotPossible: it is not published.
    """
    edition = lock_edition(edition)
    if edition.published_at is None:
        raise NotPossible("The leaderboard is not published.")
    told = {"published_at": edition.published_at.isoformat()}
    _tell(_teams_on_leaderboard(edition.as_published()), edition, "taken_back", edition.get_absolute_url(), by=by)
    return _changed(edition, "board.unpublished", by, told, published_at=None, **FOLLOWS)


def _find_unmeasured(edition: Edition, recipe: Recipe) -> list[str]:
    """Metrics that the recipe of now does not average, and that were measured of no submission, where any was."""
    values = MetricValue.objects.filter(run__submission__system__edition=edition, run__kind=OBJECTIVE.kind)
    single = values.exclude(data_set__startswith=AVERAGE).order_by()
    measured = set(single.values_list("metric", "estimator").distinct())
    known = _asked_metrics(edition.ranked_track)
    return [
        f"{place}: expected a metric that was measured of the submissions, found {find_metric(*one).label} "
        f"(metric {one[0]}, estimator {one[1] or 'none'}). Nothing that was submitted gives it."
        for place, metrics in _asked_metrics(recipe.tracks[edition.track or recipe.track.name]).items()
        for one in metrics
        if measured and one not in measured and one not in known.get(place, ())
    ]


def _asked_metrics(track: Track) -> dict[str, list[tuple[str, str]]]:
    """Return metric and estimator of each average and of each further minimum, by their place in the recipe."""
    start, gates = f"tracks.{track.name}", track.ranking.gates if track.ranking else ()
    return {
        f"{start}.averages": [(one.metric, one.estimator) for one in track.averages],
        f"{start}.ranking.gates": [(one.metric, one.estimator) for one in gates],
    }


def _tell(teams: Iterable[Team], edition: Edition, news: str, url: str, *, by: Any, releases: bool = False) -> None:
    mail = render_mail(f"leaderboard/mail/{news}.txt", {"edition": edition, "releases": releases})
    for team in teams:
        notify_team(team=team, kind=NotificationKind.PUBLISHED, mail=mail, url=url, besides=by)


@transaction.atomic
def freeze_leaderboard(*, edition: Edition, at: datetime, now: datetime, by: Any) -> Edition:
    """Let the leaderboard rest on what had been evaluated by a time.

    Raises:
        NotPossible: the time is still to come, or a submission is being deleted.
    """
    if at > now:
        raise NotPossible(FUTURE)
    _refuse_deleted(edition)
    return _changed(lock_edition(edition), "board.frozen", by, {"as_of": at.isoformat()}, frozen_at=at)


@transaction.atomic
def unfreeze_leaderboard(*, edition: Edition, by: Any) -> Edition:
    """Let the leaderboard follow each evaluation again.

    Raises:
        NotPossible: it is not frozen.
    """
    edition = lock_edition(edition)
    if edition.frozen_at is None:
        raise NotPossible("The leaderboard is not frozen.")
    return _changed(edition, "board.unfrozen", by, {"as_of": edition.frozen_at.isoformat()}, frozen_at=None)


def _refuse_deleted(edition: Edition) -> None:
    try:
        refuse_deleted(Submission.objects.filter(system__edition=edition).select_related("system"))
    except NotPossible as reason:
        raise NotPossible(str(reason)) from None


def _changed(edition: Edition, action: str, by: Any, told: Mapping[str, Any], **fields: Any) -> Edition:
    """Write fields of a locked edition, and what was done into the audit log."""
    for name, value in fields.items():
        setattr(edition, name, value)
    edition.save(update_fields=list(fields))
    audit.record(action, edition, actor=by, **told)
    return edition


def _teams_on_leaderboard(edition: Edition) -> list[Team]:
    teams = {one.system.team_id: one.system.team for one in submissions_on_leaderboard(edition) if one.system.team}
    for team in teams.values():
        team.edition = edition
    return sorted(teams.values(), key=lambda team: (team.number or 0, team.name))
