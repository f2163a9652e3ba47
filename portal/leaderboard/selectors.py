"""The leaderboard of an edition, as page, API, downloads and figures read it.

It is a function of the numbers that had been evaluated by its time, and of a policy. `leaderboard_for` checks the
right: a published one is everybody's, an unpublished one is its organizers' and looks to all others as if there were
none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.http import Http404

from common.errors import ProblemsError
from evaluation.app.objective_results.selectors import ReadExtent, read_objective_values, read_originals
from evaluation.objective_results.leaderboard_entries import (
    ShownAverage,
    list_columns,
    make_entry,
    make_original_entry,
    select_shown,
)
from evaluation.protocols.published import PublishedSystem, published_systems
from evaluation.protocols.ranking.entries import LeaderboardEntry, Rankings
from evaluation.protocols.ranking.policy import LeaderboardPolicy, make_policy
from evaluation.protocols.ranking.ranking import rank
from portal.accounts.models import User
from portal.challenges.models import Edition
from portal.core.labels import name_language
from portal.submissions.models import SharedPart, Submission, System
from portal.submissions.rules import Relation, SystemPart, may_see
from portal.submissions.selectors import STANDING, STOPPED, count_mismatches


@dataclass(frozen=True)
class Leaderboard:
    """A leaderboard as somebody may see it.

    Attributes:
        submissions: of each system the one that stands here.
        measured_at: when the newest of its numbers was computed.
        columns: privacy, utilities, every other average of the track, then what a reader may ask for.
        published: systems of papers, where the recipe is the shipped one.
        table: the rankings.
    """

    edition: Edition
    submissions: tuple[Submission, ...]
    measured_at: datetime | None
    policy: LeaderboardPolicy
    columns: tuple[ShownAverage, ...]
    entries: tuple[LeaderboardEntry, ...]
    published: Sequence[PublishedSystem]
    table: Rankings

    @property
    def is_preview(self) -> bool:
        """Return whether only its organizers see it yet."""
        return self.edition.published_at is None

    @property
    def as_of(self) -> datetime | None:
        """Return the time whose numbers it rests on, where it is frozen."""
        return self.edition.frozen_at

    @cached_property
    def averages(self) -> tuple[ShownAverage, ...]:
        """Return the averages of the edition."""
        return tuple(one for one in self.columns if not one.switch)

    @property
    def is_empty(self) -> bool:
        """Return whether nothing but the original speech stands here."""
        return all(entry.kind == "original" for entry in self.entries)


def leaderboard_for(user: Any, edition: str) -> Leaderboard:
    """The leaderboard of an edition by its live policy, or "not found"."""
    shown = shown_edition_for(user, edition)
    try:
        return build_leaderboard(shown)
    except ProblemsError as error:
        raise Http404("The recipe of this edition cannot be read, so there is no leaderboard.") from error


def shown_edition_for(user: Any, name: str) -> Edition:
    """Return the edition whose leaderboard this person may see, or "not found"."""
    edition = Edition.objects.select_related("corpus").filter(name=name).first()
    if edition is None or not may_see_leaderboard(user, edition):
        raise Http404
    return edition


def find_unpublished(name: str) -> Edition | None:
    """Return a listed edition whose leaderboard is not published, which everybody may know."""
    return Edition.objects.filter(name=name, is_listed=True, published_at=None).first()


def may_see_leaderboard(user: Any, edition: Edition) -> bool:
    """Return whether somebody may see an edition's leaderboard; a team of the edition is no nearer to it than anybody
    else."""
    is_published = edition.published_at is not None
    if may_see(SystemPart.NUMBERS, Relation.OTHER, is_published=is_published):
        return True
    organizes = user.is_authenticated and edition.organizers.filter(pk=user.pk).exists()
    return organizes and may_see(SystemPart.NUMBERS, Relation.ORGANIZER, is_published=is_published)


def build_leaderboard(edition: Edition) -> Leaderboard:
    """Return the leaderboard of an edition, a published one by the recipe with which it was published."""
    return rank_leaderboard(edition.as_published())


def rank_leaderboard(edition: Edition, extent: ReadExtent = ReadExtent.SHOWN) -> Leaderboard:
    """Return the leaderboard by the recipe of the edition at hand: the original speech first, then the systems.

    Args:
        extent: what is read of each system.
    """
    recipe, track, submissions = edition.recipe, edition.ranked_track, submissions_on_leaderboard(edition)
    columns, policy = columns_of(edition), make_policy(recipe, edition.track)
    values = read_objective_values(submissions, extent=extent, as_of=edition.frozen_at)
    original = make_original_entry(
        list(values.values()), columns, policy, recipe, track, read_originals(edition, edition.frozen_at)
    )
    systems = [make_entry(values[one.pk], columns, policy, track, **describe_system(one)) for one in submissions]
    entries = (*([original] if original else []), *systems)
    return Leaderboard(
        edition=edition,
        submissions=tuple(submissions),
        measured_at=max((one.measured_at for one in values.values() if one.measured_at), default=None),
        policy=edition.policy,
        columns=select_shown(columns, entries),
        entries=entries,
        published=published_systems(recipe, track, policy),
        table=rank(entries, edition.policy),
    )


def columns_of(edition: Edition) -> tuple[ShownAverage, ...]:
    """Return every column that the leaderboard of an edition can have."""
    track = edition.ranked_track
    languages = {one: name_language(one) for one in (*track.languages, *track.surprise_languages)}
    return list_columns(edition.recipe, track, edition.policy, languages)


def describe_system(submission: Submission) -> dict[str, Any]:
    """Return what the entry of a submission says of its system."""
    system = submission.system
    return {
        "key": system.name,
        "label": str(system),
        "team": str(system.team_id or ""),
        "team_name": str(system.team or ""),
        "title": system.title,
        "kind": "baseline" if system.is_baseline or system.team_id is None else "system",
        "is_late": submission.is_late,
        "is_contrastive": system.kind == System.Kind.CONTRASTIVE,
    }


# Submissions ---------------------------------------------------------------------------------------


def submissions_on_leaderboard(edition: Edition) -> list[Submission]:
    """Of each system the newest submission that had been evaluated by its time (`is_on_leaderboard`).

    One that is being evaluated again stays where it was, with the numbers of before.
    """
    found = Submission.objects.filter(system__edition=edition, evaluated_at__isnull=False, is_held=False)
    if edition.frozen_at is not None:
        found = found.filter(evaluated_at__lte=edition.frozen_at)
    found = found.filter(state__in=STANDING).select_related("system__team")
    newest = {one.system_id: one for one in found.order_by("version")}
    for submission in newest.values():
        submission.system.edition = edition
    return list(newest.values())


def find_released(leaderboard: Leaderboard) -> tuple[dict[str, int], set[str]]:
    """Return what everybody may read and hear of the systems on the leaderboard.

    Returns:
        of those with a description, by name, the version that it came with, which may be an earlier one; and the names
        of those with samples.
    """
    released = SharedPart.objects.filter(submission__system__edition=leaderboard.edition).exclude(released_at=None)
    standing = released.exclude(submission__state=Submission.State.WITHDRAWN).order_by("submission__version")
    parts = list(standing.values_list("submission", "submission__system", "submission__version", "document"))
    heard = {submission for submission, *_, document in parts if not document}
    newest = {one.system_id: one for one in leaderboard.submissions}
    versions = {
        newest[system].system.name: version
        for _, system, version, document in parts
        if document and system in newest and version <= newest[system].version
    }
    return versions, {one.system.name for one in leaderboard.submissions if one.pk in heard}


def list_own_teams(user: User | AnonymousUser, edition: Edition) -> set[str]:
    """Return the teams of a person in an edition, as entries name them."""
    own = [] if user.is_anonymous else user.memberships.filter(team__edition=edition)
    return {str(one.team_id) for one in own}


def list_held(edition: Edition) -> list[Submission]:
    """Evaluated submissions that wait for their release, the oldest first: for organizers."""
    found = Submission.objects.filter(system__edition=edition, evaluated_at__isnull=False, is_held=True)
    return list(found.filter(state__in=STANDING).select_related("system__team").order_by("evaluated_at", "pk"))


def describe_under_way(leaderboard: Leaderboard, user: User | AnonymousUser, *, with_names: bool) -> str:
    """Which systems will be on the leaderboard once they are evaluated, as a sentence; empty for none.

    Args:
        with_names: for organizers; everybody else reads how many, and teams the names of their own.
    """
    if leaderboard.as_of:
        return ""
    evaluating = Submission.objects.filter(system__edition=leaderboard.edition, state=Submission.State.EVALUATING)
    found = list(evaluating.exclude(STOPPED).select_related("system__team").order_by("created_at", "pk"))
    if not found:
        return ""
    systems = "A system is" if len(found) == 1 else f"{len(found)} systems are"
    teams = set() if user.is_anonymous else set(user.memberships.values_list("team", flat=True))
    named = [str(one) for one in found if with_names or one.system.team_id in teams]
    names = f": {', '.join(named)}" if named else ""
    if names and len(named) < len(found):
        names = f", among them {', '.join(named)}"
    when = "as soon as its numbers have been computed"
    if leaderboard.edition.holds_evaluations:
        when = "once it is evaluated and an organizer releases it"
    return f"{systems} being evaluated{names}. A system appears here {when}."


def mismatches_on_leaderboard(leaderboard: Leaderboard) -> dict[str, int]:
    """Return how many numbers each system reports otherwise than its files give, by its name: for organizers."""
    unlike = count_mismatches(leaderboard.submissions, leaderboard.as_of)
    return {one.system.name: unlike[one.pk] for one in leaderboard.submissions if one.pk in unlike}
