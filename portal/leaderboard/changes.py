"""What changed in the rules of an edition: by another recipe or policy, and since its leaderboard was published."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.utils.dateparse import parse_datetime

from evaluation.protocols.ranking.policy import policy_in_words, write_policy
from evaluation.protocols.recipe_changes import list_changes
from evaluation.protocols.recipe_making import write_recipe
from portal.challenges.models import Edition
from portal.core.models import AuditEvent

# Of the form of an edition what decides which submissions are late.
DEADLINES = {"submissions_close_at": "Deadline for submissions", "late_until": "Late submissions are taken until"}
# Of a ranking what `policy_in_words` says.
IN_WORDS = ("minimum_eers", "policy", "inclusive", "gates", "late", "basis", "several", "utilities", "split", "attack")
RECIPE_CHANGED = "board.recipe_changed"
PUBLISHED = ("board.published", "board.published_again")


@dataclass(frozen=True)
class PublishedChange:
    """A change of the rules since a leaderboard was first published.

    Attributes:
        before, after: what held and what holds, in sentences.
        is_pending: whether the leaderboard follows it only once it is published again.
    """

    at: datetime
    before: tuple[str, ...]
    after: tuple[str, ...]
    is_pending: bool = False


def describe_change(before: Edition, after: Edition) -> tuple[list[str], list[str]]:
    """Return what held and what holds by two recipes of an edition: ranking in sentences, all else by its key.

    Both are empty where the recipes say the same.
    """
    changes = list_changes(*(_write_recipe(one) for one in (before, after)))
    if not changes:
        return [], []
    old, new = (policy_in_words(one.policy) for one in (before, after))
    said = tuple(f"tracks.{before.ranked_track.name}.ranking.{name}" for name in IN_WORDS) if old != new else ()
    others = [one for one in changes if not one.key.startswith(said)]
    return (
        [*_only_in(old, new), *(f"{one.key}: {one.before}" for one in others if one.before)],
        [*_only_in(new, old), *(f"{one.key}: {one.after}" for one in others if one.after)],
    )


def list_published_changes(edition: Edition) -> list[PublishedChange]:
    """Return what changed of a published leaderboard's rules since it was first published, the newest first."""
    if edition.published_at is None:
        return []
    of_edition = AuditEvent.objects.filter(subject_type=edition._meta.label_lower, subject_id=str(edition.pk))
    events = list(of_edition.filter(action__in=(*PUBLISHED, RECIPE_CHANGED, "edition.changed")).order_by("pk"))
    published = [place for place, one in enumerate(events) if one.action in PUBLISHED]
    found = []
    for place, event in enumerate(events):
        if not published or place < published[0]:
            continue
        if event.action == RECIPE_CHANGED:
            before, after = (tuple(event.data[key]) for key in ("before", "after"))
            found.append(PublishedChange(event.at, before, after, is_pending=place > published[-1]))
        elif DEADLINES.keys() & event.data.get("changes", {}).keys():
            found.append(_describe_deadlines(event))
    return found[::-1]


def _write_recipe(edition: Edition) -> str:
    """Return the recipe of an edition with all that its organizers rank by, each default as it is written."""
    policy = edition.policy_changes
    return write_recipe(write_policy(edition.recipe, edition.track, policy))


def _only_in(sentences: Iterable[str], others: Iterable[str]) -> list[str]:
    known = set(others)
    return [one for one in sentences if one not in known]


def _describe_deadlines(event: AuditEvent) -> PublishedChange:
    changed = {name: pair for name, pair in event.data["changes"].items() if name in DEADLINES}
    before, after = (
        tuple(f"{DEADLINES[name]}: {_moment(pair[place])}." for name, pair in changed.items()) for place in (0, 1)
    )
    return PublishedChange(event.at, before, after)


def _moment(written: str | None) -> str:
    at = parse_datetime(written) if written else None
    return f"{at:%Y-%m-%d %H:%M} UTC" if at else "none"
