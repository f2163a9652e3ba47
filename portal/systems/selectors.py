"""Which submission of a system a visitor meets, and what they are to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from django.http import Http404, HttpRequest

from evaluation.app.models import EvaluationRun
from evaluation.app.runs.kinds import CHAINED_KINDS, MEASURES, OBJECTIVE
from evaluation.app.runs.selectors import list_runs
from listening.app.studies.selectors import find_played
from portal.challenges.data_files import gives_transcripts
from portal.challenges.models import DataSet, Edition
from portal.submissions.models import SharedPart, Submission, System
from portal.submissions.rules import Relation, SystemPart, may_see
from portal.submissions.selectors import (
    relations_and_ownership,
    shown_submission,
    system_for,
    with_stopped,
    with_what_can_be_offered,
)


@dataclass(frozen=True)
class View:
    """A system as one visitor may see it.

    Attributes:
        is_own: whether the visitor belongs to its team or organizes its edition.
        versions: the submissions to choose from, for its own.
    """

    system: System
    relations: tuple[Relation, ...]
    submission: Submission
    versions: list[Submission]
    is_owner: bool  # of its team

    @property
    def relation(self) -> Relation:
        """Return the one that allows most."""
        return self.relations[0]

    @property
    def is_own(self) -> bool:
        return may_see(SystemPart.REPORT, self.relation, is_published=True)

    @property
    def is_organizer(self) -> bool:
        """Return whether the visitor may start and end runs."""
        return self.relation is Relation.ORGANIZER

    @property
    def as_of(self) -> datetime | None:
        """Until when numbers count: a public page of a frozen leaderboard shows what had been measured by its time."""
        edition = self.system.edition
        return edition.frozen_at if edition and not self.is_own else None

    @property
    def query(self) -> str:
        """Return the end of an address that leads to this very version; empty for the one shown without it."""
        usual = shown_submission(self.system, self.relation, self.versions) if self.versions else None
        return f"?version={self.submission.version}" if usual and usual.pk != self.submission.pk else ""

    @cached_property
    def evaluation_runs(self) -> list[EvaluationRun]:
        """Return every run of its numbers, measures, attacks and recognition, the newest first."""
        return list_runs(self.submission, OBJECTIVE.kind, MEASURES.kind, *(one.kind for one in CHAINED_KINDS))

    @property
    def context(self) -> dict[str, Any]:
        """Return what every page of the system shows."""
        return {
            "system": self.system,
            "edition": self.system.edition,
            "corpus": self.system.corpus,
            "submission": self.submission,
            "is_own": self.is_own,
            "is_organizer": self.is_organizer,
            "version_query": self.query,
        }


def may_read_words(relations: tuple[Relation, ...], system: System, data_set: DataSet) -> bool:
    """Return whether somebody who hears a system may read what is said: organizers, and teams that are given the
    words."""
    if Relation.ORGANIZER in relations:
        return True
    return Relation.TEAM in relations and system.edition is not None and gives_transcripts(system.edition, data_set)


def edition_of(system: System) -> Edition:
    """Return the edition of a system, or "not found"."""
    if system.edition is None:
        raise Http404
    return system.edition


def numbers_view(request: HttpRequest, name: str) -> View:
    """Return a system whose numbers this visitor may see, or "not found"."""
    return make_view(request, system_for(request.user, name, SystemPart.NUMBERS))


def member_view(request: HttpRequest, name: str) -> View:
    """Return a system whose speech this visitor may hear, or "not found"."""
    return make_view(request, system_for(request.user, name))


def own_view(request: HttpRequest, name: str) -> View:
    """Return a system for its team and its organizers; for others there is none."""
    view = member_view(request, name)
    if not view.is_own:
        raise Http404
    return view


def organized_view(request: HttpRequest, name: str) -> View:
    """Return a system for those who organize what it is for; for others there is none."""
    view = member_view(request, name)
    if not view.is_organizer:
        raise Http404
    return view


def _is_as_published(edition: Edition, submission: Submission) -> bool:
    """Return whether a submission has numbers by a published leaderboard's recipe, if that was changed since."""
    changed_at, evaluated_at = edition.recipe_changed_at, submission.evaluated_at
    return changed_at is None or (evaluated_at is not None and evaluated_at <= changed_at)


def make_view(request: HttpRequest, system: System) -> View:
    """Return the submission whose numbers this visitor meets, or "not found"; its own may name another version."""
    relations, is_owner = relations_and_ownership(request.user, system)
    edition = system.edition
    if edition is not None:
        system.edition = edition.as_published()
    relation = relations[0]
    versions = list(with_what_can_be_offered(with_stopped(system.submissions.order_by("-version"))))
    wanted = request.GET.get("version", "") if relation is not Relation.OTHER else ""
    chosen = next((one for one in versions if str(one.version) == wanted), None)
    submission = chosen or shown_submission(system, relation, versions)
    if submission is None:
        raise Http404
    if edition is not None and relation is not Relation.OTHER and not _is_as_published(edition, submission):
        system.edition = edition
    submission.system = system
    return View(system, relations, submission, versions if relation is not Relation.OTHER else [], is_owner)


def list_samples(parts: Iterable[SharedPart], submission: Submission) -> list[SharedPart]:
    """Return the samples among them that may be heard now, while no listening test plays them."""
    samples = [(part, part.file.utterance_id) for part in parts if part.file]
    played = find_played(submission=submission, utterances=[one for _, one in samples]) if samples else ()
    return [part for part, utterance in samples if utterance not in played]
