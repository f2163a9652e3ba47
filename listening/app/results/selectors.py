"""Results of listeners as pages, downloads, panels and API read them; `rules` says who may see which.

Results and study that are unknown, not analysed or not to be seen look the same. Results are parsed once in a process
and kept by the key of their file, whose content never changes. Once a submission that was heard is withdrawn, results
that name it are for the organizers alone, until the study is analysed without it and published again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from django.core.files.storage import default_storage
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery, Value
from django.http import Http404

from common.tables import DataTable
from listening.analysis.figures import StudyFigure, list_figures
from listening.analysis.tables import CONTENTS, Results
from listening.app.models import Analysis, Condition, Study
from listening.app.results.inputs import Changed, changed_parts, compute_basis
from listening.app.results.rules import (
    ResultsPart,
    may_see,
    notes_on_nobody,
    part_of_table,
    rows_for_everybody,
)
from listening.app.studies.selectors import organizers_of, was_published
from portal.challenges.models import Edition
from portal.jobs.models import Job
from portal.submissions.models import Submission
from portal.submissions.rules import Relation
from portal.submissions.selectors import STANDING

KEPT = 8  # parsed results in a process: of 62 systems each takes some ten megabytes


@dataclass(frozen=True)
class Shown:
    """A study's results as one person may see them.

    Attributes:
        analysis: organizers meet the newest finished one, others the published one; None where there is none yet,
            which only organizers meet.
        own_systems: codes of the systems of this person's teams.
        is_published: whether this very analysis is what everybody sees.
    """

    study: Study
    analysis: Analysis | None
    relation: Relation
    own_systems: frozenset[str] = field(default=frozenset())
    is_published: bool = False

    @property
    def is_organizer(self) -> bool:
        return self.relation is Relation.ORGANIZER

    @property
    def results(self) -> Results:
        """Return what was found.

        Raises:
            Http404: the study is not analysed yet.
        """
        if self.analysis is None:
            raise Http404
        return parsed_results(self.analysis.results)

    def may_see(self, part: ResultsPart) -> bool:
        """Return whether this person may see it here; once somebody withdrew, nobody sees anything of single people."""
        if part is not ResultsPart.RESULTS and self.analysis is not None and self.analysis.erased_at is not None:
            return False
        return may_see(part, self.relation, is_published=self.is_published)

    def table(self, scores: str, name: str) -> DataTable:
        """Return a table with the rows that this person may see.

        Raises:
            Http404: there is none of that name, or it is not for this person.
        """
        table = self.results.table(scores, name)
        part = part_of_table(name)
        if table is None or not self.may_see(part):
            raise Http404
        if part is ResultsPart.UTTERANCES and not self.is_organizer:
            place = table.columns.index("system")
            return replace(table, rows=tuple(row for row in table.rows if row[place] in self.own_systems))
        return table if self.may_see(ResultsPart.LISTENERS) else rows_for_everybody(table)

    @property
    def tables(self) -> frozenset[str]:
        """Return names of the tables that this person may see, in whole or their own rows."""
        return frozenset(name for name in CONTENTS if self.may_see(part_of_table(name)))


def shown_analysis_for(user: Any, name: str, part: ResultsPart = ResultsPart.RESULTS) -> Shown:
    """Return the results of a study as this person may see them, or "not found".

    Args:
        part: what is asked for; for whom it is not, there is no such page.
    """
    study = _studies().filter(name=name).first()
    if study is None:
        raise Http404
    relation, own = _relation_to(user, study)
    is_open = is_open_to_all(study)
    if not may_see(part, relation, is_published=is_open):
        raise Http404
    analysis = current_analysis(study) if relation is Relation.ORGANIZER else study.published_analysis
    return Shown(study, analysis, relation, own, is_open and analysis == study.published_analysis)


def find_hidden(name: str) -> Study | None:
    """Return a study whose results were published and are hidden now, of a listed edition."""
    study = _studies().filter(Q(edition=None) | Q(edition__is_listed=True), name=name).first()
    return study if study is not None and was_published(study) and not is_open_to_all(study) else None


def list_shown_analyses(user: Any, edition: Edition) -> list[Shown]:
    """Return the studies of an edition of which this person may see results, as the pages around them show these.

    A published study is shown as everybody sees it. Organizers see the newest analysis of the other closed ones too.
    """
    organizers = Edition.organizers.through.objects.filter(edition=edition.pk, user=user.pk)
    is_organizer = Exists(organizers) if user.is_authenticated else Value(False)
    found = _studies().filter(edition=edition)
    found = found.annotate(is_organizer=is_organizer).order_by("closed_at", "pk")
    is_published = Q(published_analysis__isnull=False, results_published_at__isnull=False)
    studies = list(found.filter(is_published | Q(is_organizer=True)))
    organizes = any(study.is_organizer for study in studies)
    for study in studies:
        study.edition = edition
    is_open = {study.pk: is_open_to_all(study) for study in studies}
    newest = _newest(one for one in studies if not is_open[one.pk]) if organizes else {}
    relation = Relation.ORGANIZER if organizes else Relation.OTHER
    shown = []
    for study in studies:
        analysis = study.published_analysis if is_open[study.pk] else newest.get(study.pk)
        if analysis is not None and may_see(ResultsPart.RESULTS, relation, is_published=is_open[study.pk]):
            shown.append(Shown(study, analysis, relation, is_published=is_open[study.pk]))
    return shown


def is_open_to_all(study: Study) -> bool:
    """Return whether everybody sees the results.

    They are published, so is the leaderboard where there is one, and no system in them was withdrawn since.
    """
    is_published = study.published_analysis_id is not None and study.results_published_at is not None
    return is_published and not study.waits_for_leaderboard and not names_withdrawn(study)


def names_withdrawn(study: Study) -> bool:
    """Return whether a system that the published results name has been withdrawn since."""
    has_withdrawn: bool | None = getattr(study, "has_withdrawn", None)  # known where `_studies` found it
    if has_withdrawn is False or study.published_analysis is None:
        return False
    withdrawn = study.systems.filter(submission__state=Submission.State.WITHDRAWN).values_list("code", flat=True)
    return bool(systems_named(study.published_analysis.results).intersection(withdrawn))


def current_analysis(study: Study) -> Analysis | None:
    """Return the newest finished analysis of a closed study; None where there is none."""
    if study.state != Study.State.CLOSED:
        return None
    return study.analyses.filter(finished_at__isnull=False).order_by("-finished_at", "-pk").first()


def running_job(study: Study) -> Job | None:
    """Return the job that analyses the study now, or the last one if that did not succeed; None otherwise.

    The last one started is not always that of the newest analysis: an unfinished one is taken up again.
    """
    unfinished = study.analyses.filter(finished_at=None, job__isnull=False).select_related("job")
    jobs = [one.job for one in unfinished.order_by("-job__created_at", "-job") if one.job is not None]
    running = next((job for job in jobs if not job.has_ended), None)
    if running is not None or not jobs:
        return running
    has_succeeded_since = study.analyses.filter(finished_at__gt=jobs[0].created_at).exists()
    return None if has_succeeded_since else jobs[0]


def is_being_analysed(study: Study) -> bool:
    job = running_job(study)
    return job is not None and not job.has_ended


def changes_since(analysis: Analysis, study: Study) -> list[Changed]:
    """Return what has changed in the study since its analysis.

    Numbers of an evaluation that has ended since change no result of listeners: `outdating` leaves them out.
    """
    changes = changed_parts(analysis.basis, compute_basis(study))
    if analysis.erased_at is not None and not outdating(changes):
        changes.append(Changed.ANSWERS)
    return changes


def outdating(changes: Iterable[Changed]) -> list[Changed]:
    """Return the changes after which an analysis cannot be published."""
    return [one for one in changes if one is not Changed.MEASURES]


def with_outdated(rows: QuerySet[Condition], edition: Edition) -> QuerySet[Any]:
    """Return the systems that were heard, each with whether a later version stands on the leaderboard."""
    later = Submission.objects.filter(
        system=OuterRef("submission__system"),
        version__gt=OuterRef("submission__version"),
        evaluated_at__isnull=False,
        is_held=False,
        state__in=STANDING,
    )
    if edition.frozen_at is not None:
        later = later.filter(evaluated_at__lte=edition.frozen_at)
    return rows.annotate(is_outdated=Exists(later))


def list_outdated(study: Study) -> list[Condition]:
    """Return the systems of a study of which an earlier version was heard than stands on the leaderboard."""
    if study.edition is None:
        return []
    rows = study.systems.exclude(submission__state=Submission.State.WITHDRAWN)
    outdated = with_outdated(rows, study.edition.as_published()).filter(is_outdated=True)
    return list(outdated.select_related("submission__system").order_by("code"))


@lru_cache(maxsize=KEPT)
def parsed_results(key: str) -> Results:
    """Return the results in a stored file."""
    with default_storage.open(key) as stored:
        return Results.from_json(stored.read())


@lru_cache(maxsize=KEPT)
def figures_in(key: str) -> tuple[StudyFigure, ...]:
    """Return the figures of stored results; nothing is drawn."""
    return tuple(list_figures(parsed_results(key)))


@lru_cache(maxsize=KEPT)
def systems_named(key: str) -> frozenset[str]:
    """Return the codes of all systems that stand in results."""
    results = parsed_results(key)
    found = {
        str(name)
        for table in results.tables.values()
        for column in ("system", "first", "second", "condition", "against")
        if column in table.columns
        for name in table.values(column)
    }
    return frozenset(found | set(results.study["labels"]))


def _studies() -> Any:
    withdrawn = Condition.objects.filter(study=OuterRef("pk"), submission__state=Submission.State.WITHDRAWN)
    return Study.objects.select_related("edition__corpus", "published_analysis").annotate(
        has_withdrawn=Exists(withdrawn)
    )


def _newest(studies: Iterable[Study]) -> dict[int, Analysis]:
    """Return `current_analysis` of each study, in one query."""
    closed = [one.pk for one in studies if one.state == Study.State.CLOSED]
    of_study = Analysis.objects.filter(study=OuterRef("study"), finished_at__isnull=False)
    newest = Subquery(of_study.order_by("-finished_at", "-pk").values("pk")[:1])
    found = Analysis.objects.filter(study__in=closed, pk=newest) if closed else ()
    return {one.study_id: one for one in found}


def _relation_to(user: Any, study: Study) -> tuple[Relation, frozenset[str]]:
    """Return what this person is to a study, and which of the systems heard are their teams'."""
    if user.is_authenticated and organizers_of(study).filter(pk=user.pk).exists():
        return Relation.ORGANIZER, frozenset()
    if not user.is_authenticated:
        return Relation.OTHER, frozenset()
    own = study.systems.filter(submission__system__team__memberships__user=user).values_list("code", flat=True)
    codes = frozenset(own)
    return (Relation.TEAM if codes else Relation.OTHER), codes


def list_notes(shown: Shown) -> list[str]:
    """Return the notes; those that name a listener are for organizers."""
    notes = list(shown.results.remarks)
    if shown.may_see(ResultsPart.LISTENERS):
        return notes
    assert shown.analysis is not None  # noqa: S101
    return list(_notes_of_nobody(shown.analysis.results))


@lru_cache(maxsize=KEPT)
def _notes_of_nobody(results: str) -> tuple[str, ...]:
    return notes_on_nobody(parsed_results(results))
