"""Which submission of a system a visitor meets, and what they are to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest

from evaluation.objective.values import ObjectiveValues
from portal.challenges.models import Edition
from portal.submissions.models import Submission, System
from portal.submissions.selectors import relation_to, shown_submission, system_for
from portal.submissions.visibility import Part, Relation, may_see


@dataclass(frozen=True)
class View:
    """A system as one visitor may see it.

    Attributes:
        is_own: whether the visitor belongs to its team or organizes its edition.
        versions: the submissions to choose from, for its own.
    """

    system: System
    relation: Relation
    submission: Submission
    versions: list[Submission]

    @property
    def is_own(self) -> bool:
        return may_see(Part.REPORT, self.relation, is_published=True)

    @property
    def query(self) -> str:
        """The end of an address that leads to this very version; empty for the one shown without it."""
        usual = shown_submission(self.system, self.relation, self.versions) if self.versions else None
        return f"?version={self.submission.version}" if usual and usual.pk != self.submission.pk else ""


@dataclass(frozen=True)
class SystemNumbers:
    """A system in an edition as one visitor may see it, with the objective numbers of its submission."""

    view: View
    values: ObjectiveValues


def edition_system_for(user: Any, name: str) -> System:
    """A system of an edition whose numbers this visitor may see, or "not found"."""
    system = system_for(user, name, Part.NUMBERS)
    if system.edition is None:
        raise Http404
    return system


def edition_of(system: System) -> Edition:
    """The edition of a system that has one."""
    assert system.edition is not None  # noqa: S101
    return system.edition


def view_of(request: HttpRequest, system: System) -> View:
    """The submission whose numbers this visitor meets, or "not found"; its own may name another version."""
    relation = relation_to(request.user, system)
    versions = list(system.submissions.order_by("-version"))
    wanted = request.GET.get("version", "") if relation is not Relation.OTHER else ""
    chosen = next((one for one in versions if str(one.version) == wanted), None)
    submission = chosen or shown_submission(system, relation, versions)
    if submission is None:
        raise Http404
    submission.system = system
    return View(system, relation, submission, versions if relation is not Relation.OTHER else [])
