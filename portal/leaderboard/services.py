"""What an organizer does with a leaderboard: try a policy or a version of the recipe, publish, take back, freeze."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.urls import reverse

from evaluation.app.models import MetricValue
from evaluation.app.objective_results.services import cancel_version, start_version
from evaluation.app.runs.context import track_of
from evaluation.app.runs.kinds import OBJECTIVE
from evaluation.app.submission_evaluation.services import start_originals
from evaluation.metrics.catalogue import find_metric
from evaluation.objective_results.track_averages import asked_numbers_differ
from evaluation.objective_results.values import AVERAGE
from evaluation.protocols.ranking.policy import FIELDS, LeaderboardPolicy, find_changes, policy_as_dict
from evaluation.protocols.recipes import Recipe, RecipeError, Track, load_recipe
from evaluation.protocols.tracks import narrow_to_track
from evaluation.protocols.versions import find_obstacles
from portal.accounts.rules import NotificationKind
from portal.challenges.models import Edition, RecipeVersion
from portal.challenges.rules import read_recipe_text
from portal.challenges.selectors import find_version, has_submissions, is_in_use, list_versions
from portal.core import audit
from portal.core.clock import read_clock
from portal.core.mail import render_mail
from portal.jobs.services import NotPossible
from portal.leaderboard.changes import list_version_changes
from portal.leaderboard.selectors import policy_by, submissions_on_leaderboard
from portal.submissions.models import Submission
from portal.submissions.services import refuse_removed, release_parts
from portal.teams.models import Team
from portal.teams.notifications import notify_team
from portal.teams.services import lock_edition

FROZEN = "The leaderboard is frozen and must not change; unfreeze it before making another policy live."
NO_SUBMISSION = "Nothing was submitted yet, so the recipe itself can be changed: on the page “Edit” of the edition."
UNCHANGED = "This recipe computes and ranks as the adopted one does: change something, or go back."
FROZEN_RECIPE = "The leaderboard is frozen and must not change; unfreeze it before adopting a version of the recipe."
NO_DRAFT = "This version of the recipe is no draft any more."
FUTURE = "A leaderboard can be frozen as of now or of a time that has passed."


class LeaderboardError(Exception):
    """An action that the state of the leaderboard does not allow; its words are for the organizer."""


@transaction.atomic
def save_draft_policy(*, edition: Edition, policy: LeaderboardPolicy, by: Any) -> Edition:
    """Keep a policy to look at; one that is live already leaves no draft."""
    edition = lock_edition(edition)
    is_live = policy == policy_by(edition, edition.leaderboard_policy)
    draft = {} if is_live else _whole(policy, edition)
    return _changed(edition, "board.policy-drafted", by, {"policy": draft}, draft_policy=draft)


@transaction.atomic
def discard_draft_policy(*, edition: Edition, by: Any) -> Edition:
    """Forget the draft."""
    edition = lock_edition(edition)
    return _changed(edition, "board.draft-discarded", by, {"policy": edition.draft_policy}, draft_policy={})


@transaction.atomic
def make_policy_live(*, edition: Edition, by: Any) -> Edition:
    """Rank the leaderboard by the draft from now on.

    Once something was submitted, that is another version of the recipe. A published leaderboard is published again by
    it, unless it waits for that with an earlier version.

    Raises:
        LeaderboardError: there is no draft, the leaderboard is frozen, or a version of the recipe is a draft.
    """
    edition, now = lock_edition(edition), read_clock()
    if not edition.draft_policy:
        raise LeaderboardError("There is no draft: the policy that you see is live already.")
    if edition.frozen_at is not None:
        raise LeaderboardError(FROZEN)
    live = find_changes(policy_by(edition, edition.draft_policy), edition.recipe, edition.track)
    told: dict[str, Any] = {"before": edition.leaderboard_policy, "after": live}
    fields: dict[str, Any] = {"leaderboard_policy": live, "draft_policy": {}}
    follows = edition.published_at is not None and edition.published_number is None
    if is_in_use(edition):
        _refuse_draft(list_versions(edition))
        text = {"protocol": edition.protocol, "recipe_text": edition.recipe_text, "policy": live}
        version = _next_version(edition, note="The organizers changed how systems are ranked.", created_by=by, **text)
        version.adopted_at, version.adopted_by = now, by
        version.save()
        fields["recipe_number"] = told["recipe_version"] = version.number
        fields["published_number"] = edition.recipe_number if follows else edition.published_number
    _changed(edition, "board.policy-live", by, told, **fields)
    return publish_version(edition=edition, now=now, by=by) if follows and "recipe_number" in fields else edition


@transaction.atomic
def publish_leaderboard(*, edition: Edition, now: datetime, by: Any, releases: bool = False) -> Edition:
    """Show the leaderboard to everybody and tell each team that stands on it.

    Args:
        releases: whether everybody hears the samples and reads the descriptions that teams offered, too.

    Raises:
        LeaderboardError: it is published already, or a submission is being deleted.
    """
    edition = lock_edition(edition)
    if edition.published_at is not None:
        raise LeaderboardError("The leaderboard is published already.")
    _refuse_removed(edition)
    teams = _teams_on_leaderboard(edition)
    told = {"teams": [str(team) for team in teams], "recipe_version": edition.recipe_number}
    _changed(edition, "board.published", by, told, published_at=now, published_number=None)
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
    edition = lock_edition(edition)
    if edition.published_at is None:
        raise LeaderboardError("The leaderboard is not published.")
    number = edition.published_number or edition.recipe_number
    told = {"published_at": edition.published_at.isoformat(), "recipe_version": number}
    _tell(_teams_on_leaderboard(edition), edition, "taken_back", edition.get_absolute_url(), by=by)
    return _changed(edition, "board.unpublished", by, told, published_at=None, published_number=None)


@transaction.atomic
def publish_version(*, edition: Edition, now: datetime, by: Any) -> Edition:
    """Publish a published leaderboard again, by the adopted version of the recipe, and tell each team on it.

    Raises:
        LeaderboardError: it is not published, or by that version already.
    """
    edition = lock_edition(edition)
    if edition.published_at is None or edition.published_number is None:
        raise LeaderboardError("There is no later version of the recipe to publish the leaderboard with.")
    _refuse_removed(edition)
    told = {"before": edition.published_number, "recipe_version": edition.recipe_number}
    _changed(edition, "board.published_again", by, told, published_at=now, published_number=None)
    url = reverse("leaderboard:detail", args=[edition.name])
    _tell(_teams_on_leaderboard(edition), edition, "published_again", url, by=by)
    return edition


class VersionError(Exception):
    """A version of a recipe that cannot be: `problems` are sentences for the organizer."""

    def __init__(self, *problems: str) -> None:
        super().__init__(" ".join(problems))
        self.problems = problems


@transaction.atomic
def propose_version(*, edition: Edition, text: str = "", protocol: str = "", note: str, by: Any) -> RecipeVersion:
    """A draft of another recipe for an edition with submissions; nothing changes before it is adopted.

    Args:
        text: the recipe, unless `protocol` names a shipped one.

    Raises:
        LeaderboardError: nothing was submitted, there is a draft, or nothing would change.
        VersionError: every reason why the recipe cannot be that of a version.
    """
    edition = lock_edition(edition)
    versions = list_versions(edition)
    if not has_submissions(edition) and len(versions) == 1:
        raise LeaderboardError(NO_SUBMISSION)
    _refuse_draft(versions)
    try:
        recipe = load_recipe(protocol) if protocol else read_recipe_text(text, file=f"{edition.name}.toml")
    except RecipeError as error:
        raise VersionError(*error.problems) from None
    problems = find_obstacles(edition.recipe, narrow_to_track(recipe, edition.track), edition.track)
    if problems := problems or _find_unmeasured(edition, recipe):
        raise VersionError(*problems)
    text = "" if protocol else text
    made = RecipeVersion(edition=edition, protocol=protocol, recipe_text=text)
    if not list_version_changes(edition, find_version(edition, edition.recipe_number), made):
        raise LeaderboardError(UNCHANGED)
    made = _next_version(edition, protocol=protocol, recipe_text=text, note=note, created_by=by)
    made.save()
    audit.record("edition.recipe_proposed", edition, actor=by, recipe_version=made.number, note=note)
    if asked_numbers_differ(track_of(edition), track_of(edition.by_version(made))):
        start_version(edition=edition, version=made, submissions=submissions_on_leaderboard(edition), by=by)
    return made


@transaction.atomic
def adopt_version(*, edition: Edition, number: int, now: datetime, by: Any) -> Edition:
    """Let an edition compute and rank by a draft from now on; what is published stays as it was published.

    Raises:
        LeaderboardError: it is no draft, or the leaderboard is frozen and not published.
    """
    edition = lock_edition(edition)
    version = _draft(edition, number)
    if edition.frozen_at is not None and edition.published_at is None:
        raise LeaderboardError(FROZEN_RECIPE)
    before = edition.recipe_number
    version.adopted_at, version.adopted_by = now, by
    version.save(update_fields=["adopted_at", "adopted_by"])
    shown = (edition.published_number or before) if edition.published_at else None
    fields = {"protocol": version.protocol, "recipe_text": version.recipe_text, "recipe_number": number}
    fields["leaderboard_policy"] = version.policy
    told = {"before": before, "recipe_version": number, "note": version.note}
    differ = asked_numbers_differ(track_of(edition), track_of(edition.by_version(version)))
    edition.__dict__.pop("recipe", None)
    _changed(edition, "edition.recipe_adopted", by, told, published_number=shown, **fields)
    standing = submissions_on_leaderboard(edition)
    if differ:  # what was submitted since it was proposed
        start_version(edition=edition, version=version, submissions=standing, by=by)
    if baseline := next((one for one in standing if one.system.is_baseline), None):
        start_originals(submission=baseline, by=by)
    return edition


@transaction.atomic
def withdraw_version(*, edition: Edition, number: int, now: datetime, by: Any) -> RecipeVersion:
    """End a draft; it stays in the list.

    Raises:
        LeaderboardError: it is no draft.
    """
    edition = lock_edition(edition)
    version = _draft(edition, number)
    version.withdrawn_at = now
    version.save(update_fields=["withdrawn_at"])
    cancel_version(edition=edition, version=version, by=by)
    audit.record("edition.recipe_withdrawn", edition, actor=by, recipe_version=number, note=version.note)
    return version


def _next_version(edition: Edition, **fields: Any) -> RecipeVersion:
    """Return a new version of a recipe, not saved; the one that the edition began with gets its row."""
    versions = list_versions(edition)
    if versions[0].pk is None:
        versions[0].save()
    return RecipeVersion(edition=edition, number=max(one.number for one in versions) + 1, **fields)


def _refuse_draft(versions: Iterable[RecipeVersion]) -> None:
    if drafts := [one for one in versions if one.is_draft]:
        raise LeaderboardError(f"{drafts[0]} is a draft already. Adopt or withdraw it first.")


def _draft(edition: Edition, number: int) -> RecipeVersion:
    version = edition.recipe_versions.filter(number=number).first()
    if version is None or not version.is_draft:
        raise LeaderboardError(NO_DRAFT)
    return version


def _find_unmeasured(edition: Edition, recipe: Recipe) -> list[str]:
    """Metrics that the recipe of now does not average, and that were measured of no submission, where any was."""
    values = MetricValue.objects.filter(run__submission__system__edition=edition, run__kind=OBJECTIVE.kind)
    single = values.exclude(data_set__startswith=AVERAGE).order_by()
    measured = set(single.values_list("metric", "estimator").distinct())
    known = _asked_metrics(track_of(edition))
    return [
        f"{place}: expected a metric that was measured of the submissions, found {find_metric(*one).label} "
        f"(metric {one[0]}, estimator {one[1] or 'none'}). Nothing that was submitted gives it."
        for place, metrics in _asked_metrics(recipe.tracks[edition.track or recipe.track.name]).items()
        for one in metrics
        if measured and one not in measured and one not in known.get(place, ())
    ]


def _asked_metrics(track: Track) -> dict[str, list[tuple[str, str]]]:
    """Metric and estimator of each average and of each further minimum, by their place in the recipe."""
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
        LeaderboardError: the time is still to come, or a submission is being deleted.
    """
    if at > now:
        raise LeaderboardError(FUTURE)
    _refuse_removed(edition)
    return _changed(lock_edition(edition), "board.frozen", by, {"as_of": at.isoformat()}, frozen_at=at)


@transaction.atomic
def unfreeze_leaderboard(*, edition: Edition, by: Any) -> Edition:
    """Let the leaderboard follow each evaluation again.

    Raises:
        LeaderboardError: it is not frozen.
    """
    edition = lock_edition(edition)
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


def _teams_on_leaderboard(edition: Edition) -> list[Team]:
    teams = {one.system.team_id: one.system.team for one in submissions_on_leaderboard(edition) if one.system.team}
    for team in teams.values():
        team.edition = edition
    return sorted(teams.values(), key=lambda team: (team.number or 0, team.name))
