"""What the page of a run of an anonymiser shows: settings, voices, and what the checks found.

Which speaker got which voice is the organizers' alone, and so is what the checks found in the voices, which names
them: who knows it can undo what the voices shall hide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import Count
from django.http import Http404, HttpRequest

from anonymization.methods.contract import Anonymizer, Parameter
from anonymization.methods.errors import MethodError
from anonymization.methods.target_selection import SELECTIONS
from anonymization.models import AnonymizationRun
from anonymization.selectors import findings_of, method_of, run_for, settings_of
from anonymization.voices import parameters_of, parameters_with_values, voice_in
from portal.challenges.models import Gender, Speaker
from portal.core.wording import group_problems
from portal.jobs.rules import can_cancel, can_run_again
from portal.jobs.selectors import with_estimates
from portal.results.shown import view_of
from portal.submissions.models import System
from portal.submissions.visibility import Relation

PAGE_SIZE = 50
LEVEL_TEXTS = {
    AnonymizationRun.Level.SPEAKER: "Speaker level: a voice for each speaker",
    AnonymizationRun.Level.UTTERANCE: "Utterance level: a voice for each utterance",
}


@dataclass(frozen=True)
class VoiceRow:
    """A voice: whose it is, and each of its parameters with its value; none where the plan of the run lacks it."""

    speaker: str
    gender: str
    utterance: str
    utterances: int
    values: list[tuple[Parameter, float]]
    target: str = ""


def run_page(request: HttpRequest, system: System, data_set: str) -> dict[str, Any]:
    view = view_of(request, system)
    run = run_for(view.submission, data_set)
    is_organizer = view.relation is Relation.ORGANIZER
    method = method_of(run)
    if run.job is not None:
        with_estimates([run.job])
    page = _voices_page(request, run) if is_organizer and method else None
    return {
        "system": system,
        "corpus": run.data_set.corpus,
        "run": run,
        "job": run.job,
        "method": method,
        "version_query": view.query,
        "settings": settings_of(run),
        "targets": _targets_text(run),
        "level": LEVEL_TEXTS[AnonymizationRun.Level(run.level)],
        "is_organizer": is_organizer,
        "can_cancel": is_organizer and run.job is not None and can_cancel(run.job),
        "can_run_again": is_organizer and run.job is not None and can_run_again(run.job),
        "files": view.submission.files.filter(data_set=run.data_set).count(),
        "utterances": run.data_set.utterances.count(),
        "page": page,
        "voices": _voice_rows(run, method, list(page.object_list)) if page and method else [],
        "parameters": parameters_of(run, method),
        "voices_found": run.report.get("voices") if is_organizer else None,
        "groups": group_problems(findings_of(run) if is_organizer else run.report.get("problems", [])),
    }


def _targets_text(run: AnonymizationRun) -> str:
    """Where the targets of a run come from and by which rule they were given; empty for a run without."""
    if run.target_set is None:
        return ""
    rule = SELECTIONS.get(run.target_selection)
    count = len(run.target_recordings)
    title = rule.title if rule else run.target_selection
    return f"{title}, from the {count:,} speaker{'' if count == 1 else 's'} of {run.target_set.name}"


def organized_run(request: HttpRequest, system: System, data_set: str) -> tuple[AnonymizationRun, list[str]]:
    """A run and the names of its parameters, for somebody who organizes what it is for; for others there is none."""
    view = view_of(request, system)
    if view.relation is not Relation.ORGANIZER:
        raise Http404
    run = run_for(view.submission, data_set)
    method = method_of(run)
    if method is None:
        raise Http404
    return run, [parameter.name for parameter in parameters_of(run, method)]


def _voices_page(request: HttpRequest, run: AnonymizationRun) -> Page[Any]:
    """The speakers or utterances of the data set, a part of them."""
    if run.level == AnonymizationRun.Level.UTTERANCE:
        members = run.data_set.utterances.order_by("name").values_list("speaker__name", "speaker__gender", "name")
        return Paginator(members, PAGE_SIZE).get_page(request.GET.get("page"))
    speakers = Speaker.objects.filter(utterances__data_sets=run.data_set).order_by("name")
    counted = speakers.annotate(n=Count("utterances")).values_list("name", "gender", "n")
    return Paginator(counted, PAGE_SIZE).get_page(request.GET.get("page"))


def _voice_rows(run: AnonymizationRun, method: Anonymizer, members: Sequence[Any]) -> list[VoiceRow]:
    rows = []
    for speaker, gender, last in members:
        is_utterance = run.level == AnonymizationRun.Level.UTTERANCE
        rows.append(
            VoiceRow(
                speaker=speaker,
                gender=str(Gender(gender).label),
                utterance=last if is_utterance else "",
                utterances=1 if is_utterance else last,
                values=_values(run, method, speaker, last if is_utterance else speaker),
                target=run.targets.get(last if is_utterance else speaker, ""),
            )
        )
    return rows


def _values(run: AnonymizationRun, method: Anonymizer, speaker: str, utterance: str) -> list[tuple[Parameter, float]]:
    try:
        voice = voice_in(run, speaker=speaker, utterance=utterance, method=method)
    except MethodError:  # somebody who came into the corpus after the voices were planned
        return []
    return parameters_with_values(voice, method.parameters)
