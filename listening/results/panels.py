"""What listeners said, on the pages of the challenge: beside the objective numbers of a board and of a system, and as
the published studies of an edition.

Everybody sees what is published; an organizer of the edition sees the newest analysis of every other closed study too,
marked as a preview. Whose numbers these are is decided by `result_visibility`, as on the pages of the results.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef
from django.urls import reverse

from evaluation.selectors_objective import track_of
from listening.models import Study, StudySystem
from listening.results.beside import Beside, Heard, beside_of, correlations_in_words
from listening.results.result_words import SCORES
from listening.results.selectors import Shown, shown_analyses_of
from portal.challenges.models import Edition
from portal.core.panels import Panel
from portal.results.board import Board, Column, columns_of, entry_of, policy_by
from portal.results.shown import SystemNumbers, edition_of
from portal.submissions.models import Submission
from portal.submissions.selectors import STANDING


@dataclass(frozen=True)
class StudyPanel:
    """A study on a page: its table, where its results are, whether only organizers see it yet."""

    study: Study
    is_preview: bool
    listeners: int
    beside: Beside
    correlations: str
    address: str

    @property
    def is_scored(self) -> bool:
        """Whether its table rests on raw or on normalised scores, so that there is a switch."""
        return bool(self.beside.scores)


def board_panel(request: Any, board: Board) -> Panel | None:
    """Objective beside subjective, a table for each study."""
    scores = chosen_scores(request)
    studies = list(studies_on_board(request.user, board, scores))
    if not studies:
        return None
    context = _context(studies, scores) | {"edition": board.edition}
    data = [
        {
            "study": one.study.name,
            "title": one.study.title,
            "form": one.study.form,
            "is_simulated": one.study.is_simulated,
            "is_preview": one.is_preview,
            "published_at": one.study.results_published_at.isoformat() if one.study.results_published_at else None,
            "scores": one.beside.scores or None,
            "systems": one.beside.as_data(),
        }
        for one in studies
    ]
    return Panel("listeners", "results/_board_panel.html", context, data)


def system_panel(request: Any, numbers: SystemNumbers) -> Panel | None:
    """What listeners said of one system, beside its objective averages."""
    scores = chosen_scores(request)
    edition = edition_of(numbers.view.system)
    policy, track = policy_by(edition, edition.board_policy), track_of(edition)
    entry = entry_of(numbers.view.submission, numbers.values, track, policy)
    columns = columns_of(track, policy)
    studies = []
    for shown, heard in _heard_in(request.user, edition, {entry.key: entry}):
        if heard:
            address = reverse("studies:results-system", args=[shown.study.name, heard[0].heard])
            studies.append(_panel_of(shown, scores, columns, heard, address))
    if not studies:
        return None
    return Panel("listeners", "results/_system_panel.html", _context(studies, scores))


def edition_panel(request: Any, edition: Edition) -> Panel | None:
    """The studies whose results everybody may see."""
    studies = [one.study for one in shown_analyses_of(request.user, edition) if one.is_published]
    return Panel("listeners", "results/_edition_panel.html", {"studies": studies}) if studies else None


def chosen_scores(request: Any) -> str:
    """The kind of scores that an address asks for; normalised ones where it asks for none that exist."""
    wanted = str(request.GET.get("scores", ""))
    return wanted if wanted in SCORES else "normalised"


def studies_on_board(user: Any, board: Board, scores: str) -> Iterator[StudyPanel]:
    """The studies that this person may see beside a board, with the systems that stand on it."""
    on_board = {entry.key: entry for entry in board.entries if entry.kind != "original"}
    original = next((entry for entry in board.entries if entry.kind == "original"), None)
    for shown, heard in _heard_in(user, board.edition, on_board):
        if heard:
            address = reverse("studies:results", args=[shown.study.name])
            yield _panel_of(shown, scores, board.columns, heard, address, original)


def _context(studies: list[StudyPanel], scores: str) -> dict[str, Any]:
    words = {"scores_words": SCORES[scores], "has_switch": any(one.is_scored for one in studies)}
    return {"studies": studies, "scores": scores, **words}


def _panel_of(
    shown: Shown, scores: str, columns: tuple[Column, ...], heard: list[Heard], address: str, original: Any = None
) -> StudyPanel:
    return StudyPanel(
        study=shown.study,
        is_preview=not shown.is_published,
        listeners=shown.results.counts.get("listeners", 0),
        beside=beside_of(shown.results, scores, columns, heard, original),
        correlations=correlations_in_words(shown.results, scores),
        address=address,
    )


def _heard_in(user: Any, edition: Edition, entries: dict[str, Any]) -> Iterator[tuple[Shown, list[Heard]]]:
    """Each study that this person may see, with those of its systems that are asked for by their names."""
    studies = shown_analyses_of(user, edition)
    if not studies:
        return
    later = Submission.objects.filter(
        system=OuterRef("submission__system"),
        version__gt=OuterRef("submission__version"),
        evaluated_at__isnull=False,
        state__in=STANDING,
    )
    if edition.frozen_at is not None:
        later = later.filter(evaluated_at__lte=edition.frozen_at)
    rows = StudySystem.objects.filter(study__in=[one.study for one in studies], submission__system__name__in=entries)
    rows = rows.exclude(submission__state=Submission.State.WITHDRAWN)  # an analysis without it has no page of it
    found: dict[int, list[Heard]] = {}
    for study, code, name, is_outdated in rows.annotate(is_outdated=Exists(later)).values_list(
        "study", "code", "submission__system__name", "is_outdated"
    ):
        found.setdefault(study, []).append(Heard(code, entries[name], is_outdated))
    for shown in studies:
        yield shown, found.get(shown.study.pk, [])
