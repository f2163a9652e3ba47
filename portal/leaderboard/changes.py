"""What changed in the rules of an edition: between two versions of its recipe, and since its leaderboard was published.

A version is its recipe with what organizers rank by (*policy*): a change of either is a change of the recipe.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.utils.dateparse import parse_datetime

from evaluation.app.runs.context import track_of
from evaluation.protocols.ranking.policy import FIELDS, list_policy_changes, policy_in_words
from evaluation.protocols.versions import Change, list_changes
from portal.challenges.models import Edition, RecipeVersion
from portal.challenges.selectors import find_predecessor, list_versions, stored_recipe
from portal.core.models import AuditEvent
from portal.leaderboard.selectors import policy_by

# Of the form of an edition what decides which submissions are late.
DEADLINES = {"submissions_close_at": "Deadline for submissions", "late_until": "Late submissions are taken until"}


@dataclass(frozen=True)
class PublishedChange:
    """A change of the rules since a leaderboard was first published.

    Attributes:
        version: of the recipe; None of a deadline.
        note: why, as the organizers say it.
        before, after: what held and what holds, in sentences.
    """

    at: datetime
    before: tuple[str, ...]
    after: tuple[str, ...]
    version: int | None = None
    note: str = ""


def list_version_changes(edition: Edition, before: RecipeVersion, after: RecipeVersion) -> list[Change]:
    """Return each value in which two versions of a recipe differ, by its dotted key, what ranks last."""
    old, new = edition.by_version(before), edition.by_version(after)
    start = f"tracks.{track_of(edition).name}.ranking."

    def ranks(key: str) -> bool:
        field = key.removeprefix(start) if key.startswith(start) else ""
        return field in {*FIELDS} - {"gates"} or (field.startswith("gates.") and field.endswith(".minimum"))

    found = [one for one in list_changes(stored_recipe(before), stored_recipe(after)) if not ranks(one.key)]
    policies = (policy_by(one, one.leaderboard_policy) for one in (old, new))
    return found + [Change(start + one.key, one.before, one.after) for one in list_policy_changes(*policies)]


def list_published_changes(edition: Edition) -> list[PublishedChange]:
    """Return what changed of a published leaderboard's rules since it was first published, the newest first."""
    if edition.published_at is None:
        return []
    of_edition = AuditEvent.objects.filter(subject_type=edition._meta.label_lower, subject_id=str(edition.pk))
    events = list(of_edition.filter(action__in=("board.published", "edition.changed")).order_by("pk"))
    first = next((place for place, one in enumerate(events) if one.action == "board.published"), None)
    if first is None:
        return []
    found = [
        _describe_deadlines(one) for one in events[first:] if DEADLINES.keys() & one.data.get("changes", {}).keys()
    ]
    versions = list_versions(edition) if edition.shown_number > 1 else []
    for version in versions:
        before = find_predecessor(versions, version)
        is_shown = version.number <= edition.shown_number
        if before and is_shown and version.adopted_at and version.adopted_at >= events[first].at:
            found.append(_describe_version(edition, before, version, version.adopted_at))
    return sorted(found, key=lambda one: one.at, reverse=True)


def _describe_version(edition: Edition, before: RecipeVersion, after: RecipeVersion, at: datetime) -> PublishedChange:
    """Return what changed by a version: what ranks in sentences, everything else by its key."""
    policies = [policy_by(one, one.leaderboard_policy) for one in map(edition.by_version, (before, after))]
    old, new = map(policy_in_words, policies)
    start = f"tracks.{track_of(edition).name}.ranking."
    others = [one for one in list_version_changes(edition, before, after) if not one.key.startswith(start)]
    return PublishedChange(
        at,
        (*(one for one in old if one not in new), *(f"{one.key}: {one.before}" for one in others if one.before)),
        (*(one for one in new if one not in old), *(f"{one.key}: {one.after}" for one in others if one.after)),
        after.number,
        after.note,
    )


def _describe_deadlines(event: AuditEvent) -> PublishedChange:
    changed = {name: pair for name, pair in event.data["changes"].items() if name in DEADLINES}
    before, after = (
        tuple(f"{DEADLINES[name]}: {_moment(pair[place])}." for name, pair in changed.items()) for place in (0, 1)
    )
    return PublishedChange(event.at, before, after)


def _moment(written: str | None) -> str:
    at = parse_datetime(written) if written else None
    return f"{at:%Y-%m-%d %H:%M} UTC" if at else "none"
