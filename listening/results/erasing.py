"""Deletes the answers of people who withdrew from the analyses that hold them.

In the transaction of the withdrawal every analysis of the study is marked, and from then on nothing of single people is
shown of it. Right after, its inputs go, and its tables and figures about listeners and about utterances, since an
utterance may have been rated by one person alone; figures over many people stay, as they may be published. The files
are deleted at once, or by the scheduler where that failed; the audit trail then tells which ones.
Public: `erase_answers`, `finish_erasing`, `delete_unused`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from listening.analysis.contents import ABOUT_LISTENERS, ABOUT_UTTERANCES
from listening.analysis.tables import Results
from listening.models import Analysis, Flag, Session, Study
from listening.results.result_visibility import remarks_on_nobody, rows_for_everybody
from portal.core import audit
from portal.core.storage import store_bytes

ABOUT_SINGLES = ABOUT_LISTENERS | ABOUT_UTTERANCES
REMARK = (
    "Somebody withdrew after this was computed. Their answers are deleted, and with them everything about single "
    "listeners and utterances; the figures over all listeners are those of then."
)


def erase_answers(study: Study) -> None:
    """Mark the analyses of a study of which somebody withdrew; in the transaction of the withdrawal."""
    marked = study.analyses.filter(erased_at=None).update(erased_at=timezone.now())
    # An analysis that ended a moment ago may have flagged whoever withdraws; one that ends later finds itself marked.
    gone = Flag.objects.filter(session__study=study, session__state=Session.State.WITHDRAWN)
    gone.filter(kind__in=Flag.FOUND_BY_ANALYSIS).delete()
    if marked:
        transaction.on_commit(lambda: finish_erasing(study), robust=True)


def finish_erasing(study: Study | None = None) -> int:
    """Delete what is left of erased analyses, of one study or of all; of how many."""
    pending = Analysis.objects.filter(~Q(inputs="") | ~Q(leftovers=[]), erased_at__isnull=False)
    found = list(pending.filter(study=study) if study else pending)
    for analysis in found:
        _strip(analysis.pk)
        _delete_leftovers(analysis.pk)
    return len(found)


def delete_unused(keys: Iterable[str]) -> list[str]:
    """Delete stored files that no analysis uses and no study was imported from; those that are gone then.

    Equal files are stored once, so another analysis may hold the same.
    """
    wanted = set(keys)
    used: set[str] = set(Study.objects.filter(imported__in=wanted).values_list("imported", flat=True))
    rows = Analysis.objects.values_list("inputs", "results", "figures")
    for inputs, results, figures in rows.iterator() if wanted else ():
        used.update(wanted.intersection((inputs, results, *figures.values())))
    gone = sorted(wanted - used)
    for key in gone:
        default_storage.delete(key)
    return gone


@transaction.atomic
def _strip(pk: int) -> None:
    """Take from an analysis what is about single people; the files themselves are deleted later."""
    analysis = Analysis.objects.select_for_update(of=("self",)).get(pk=pk)
    before = {analysis.inputs, analysis.results, *analysis.figures.values()}
    if analysis.results and analysis.inputs:
        with default_storage.open(analysis.results) as stored:
            kept = _without_singles(Results.from_json(stored.read()))
        analysis.results = store_bytes(kept.as_json().encode(), ".json")
        analysis.figures = {name: key for name, key in analysis.figures.items() if name in _names_of_figures(kept)}
    analysis.inputs = ""
    after = {analysis.results, *analysis.figures.values()}
    analysis.leftovers = sorted({*analysis.leftovers, *filter(None, before - after)})
    analysis.save(update_fields=["inputs", "results", "figures", "leftovers"])


def _delete_leftovers(pk: int) -> None:
    analysis = Analysis.objects.select_related("study").get(pk=pk)
    gone = delete_unused(analysis.leftovers)
    with transaction.atomic():
        if Analysis.objects.filter(pk=pk, leftovers=analysis.leftovers).update(leftovers=[]) and analysis.leftovers:
            audit.record("study.analysis_erased", analysis.study, analysis=pk, files=gone)


def _without_singles(results: Results) -> Results:
    kept = {path: one for path, one in results.tables.items() if one.name not in ABOUT_SINGLES}
    tables = {path: rows_for_everybody(one) for path, one in kept.items()}
    return replace(results, tables=tables, remarks=[*remarks_on_nobody(results), REMARK])


def _names_of_figures(results: Results) -> set[str]:
    from listening.analysis.figures import figures_of

    return {file.path for figure in figures_of(results) for file in figure.files()}
