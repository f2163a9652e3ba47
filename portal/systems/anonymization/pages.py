"""What the page of a run of an anonymiser shows: settings, voices, and what the checks found.

Which speaker got which voice is the organizers' alone, and so is what the checks found in the voices, which names
them: who knows it can undo what the voices shall hide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import Count
from django.http import Http404, HttpRequest

from anonymization.app.models import AnonymizationRun
from anonymization.app.selectors import find_method, get_run, list_networks, list_problems, list_settings
from anonymization.app.voice_assignment import find_voice, is_planned_in_job, list_parameters, pair_parameters
from anonymization.methods.contract import (
    Anonymizer,
    MethodError,
    Parameter,
    PseudoSpeaker,
    makes_vectors,
    plans_voices,
)
from anonymization.methods.voices.files import list_voice_columns
from anonymization.methods.voices.targets import SELECTIONS
from anonymization.methods.voices.vectors import hash_vector
from common.tables import Cell, Column, Table, number_columns, plain_table
from portal.challenges.models import Gender, Speaker
from portal.core.labels import decimals, group_stored_problems, symbol
from portal.jobs.rules import can_cancel, can_run_again
from portal.jobs.selectors import with_estimates
from portal.systems.anonymization.charts import draw_pipeline, list_measured
from portal.systems.selectors import View

PAGE_SIZE = 50
SHARES_SHOWN = 3
HASH_SHOWN = 12
LEVEL_TEXTS = {
    AnonymizationRun.Level.SPEAKER: "Speaker level: a voice for each speaker",
    AnonymizationRun.Level.UTTERANCE: "Utterance level: a voice for each utterance",
}


def run_page(request: HttpRequest, view: View, data_set: str) -> dict[str, Any]:
    run = get_run(view.submission, data_set)
    is_organizer = view.is_organizer
    method = find_method(run)
    if run.job is not None:
        with_estimates([run.job])
    page = _voices_page(request, run) if is_organizer and method else None
    voices = _voice_rows(run, method, list(page.object_list)) if page and method else []
    parameters = list_parameters(run, method)
    return view.context | {
        "corpus": run.data_set.corpus,
        "run": run,
        "job": run.job,
        "method": method,
        "settings": list_settings(run),
        "networks": list_networks(request.user, run),
        "pipeline": draw_pipeline(method),
        "measured": list_measured(method),
        "targets": _targets_text(run),
        "level": LEVEL_TEXTS[AnonymizationRun.Level(run.level)],
        "can_cancel": is_organizer and run.job is not None and can_cancel(run.job),
        "can_run_again": is_organizer and run.job is not None and can_run_again(run.job),
        "files": view.submission.files.filter(data_set=run.data_set).count(),
        "utterances": run.data_set.utterances.count(),
        "page": page,
        "voices": voices,
        "is_unplanned": method is not None and not run.voices and is_planned_in_job(run, method),
        "listing": _voices_table(run, parameters, voices),
        "parameters": parameters,
        "has_mixtures": method is not None and plans_voices(method),
        "has_vectors": makes_vectors(method),
        "voices_found": run.report.get("voices") if is_organizer else None,
        "groups": group_stored_problems(list_problems(run) if is_organizer else run.report.get("problems", [])),
    }


def _targets_text(run: AnonymizationRun) -> str:
    """Return where the targets of a run come from and by which rule they were given; empty for a run without."""
    if run.target_set is None:
        return ""
    rule = SELECTIONS.get(run.target_selection)
    count = len(run.target_recordings)
    title = rule.title if rule else run.target_selection
    return f"{title}, from the {count:,} speaker{'' if count == 1 else 's'} of {run.target_set.name}"


def find_voices(view: View, data_set: str) -> tuple[AnonymizationRun, list[str]]:
    """Return a run and the names of the parameters of its voices, or "not found"."""
    run = get_run(view.submission, data_set)
    method = find_method(run)
    if method is None:
        raise Http404
    if plans_voices(method):
        return run, list_voice_columns(method)
    return run, [parameter.name for parameter in list_parameters(run, method)]


def _voices_page(request: HttpRequest, run: AnonymizationRun) -> Page[Any]:
    """Return the speakers or utterances of the data set, a part of them."""
    if run.level == AnonymizationRun.Level.UTTERANCE:
        members = run.data_set.utterances.order_by("name").values_list("speaker__name", "speaker__gender", "name")
        return Paginator(members, PAGE_SIZE).get_page(request.GET.get("page"))
    speakers = Speaker.objects.filter(utterances__data_sets=run.data_set).order_by("name")
    counted = speakers.annotate(n=Count("utterances")).values_list("name", "gender", "n")
    return Paginator(counted, PAGE_SIZE).get_page(request.GET.get("page"))


def _voice_rows(run: AnonymizationRun, method: Anonymizer, members: Sequence[Any]) -> list[dict[str, Any]]:
    """Return each voice: whose it is, and its parameters with their values; none where the plan of the run lacks it."""
    is_utterance = run.level == AnonymizationRun.Level.UTTERANCE
    return [
        {
            "speaker": speaker,
            "gender": Gender(gender).label,
            "utterance": last if is_utterance else "",
            "utterances": 1 if is_utterance else last,
            "values": pair_parameters(voice, method.parameters) if voice else [],
            "mixture": _mixture_text(voice.mixture) if voice else "",
            "vector": hash_vector(voice.vector)[:HASH_SHOWN] if voice else "",
            "target": run.targets.get(last if is_utterance else speaker, ""),
        }
        for speaker, gender, last in members
        for voice in [_find_voice(run, method, speaker, last if is_utterance else speaker)]
    ]


def _voices_table(run: AnonymizationRun, parameters: Sequence[Parameter], voices: list[dict[str, Any]]) -> Table:
    is_utterance = run.level == AnonymizationRun.Level.UTTERANCE
    has_mixtures, has_vectors = (any(row[kind] for row in voices) for kind in ("mixture", "vector"))
    heads = [Column("utterance", "Utterance")] if is_utterance else []
    heads += [Column("speaker", "Speaker")]
    heads += [] if is_utterance else number_columns("Utterances")
    heads += [Column("target", "Target")] if run.target_set else []
    heads += [Column("mixture", "Mixture")] if has_mixtures else []
    heads += [Column("vector", "Vector, SHA-256")] if has_vectors else []
    heads += [Column(one.name, symbol(one.name), kind="num", unit=one.unit.strip()) for one in parameters]
    return plain_table(
        f"Voices of the {run.level}s of this data set",
        heads,
        (_voice_cells(run, parameters, row, has_mixtures=has_mixtures, has_vectors=has_vectors) for row in voices),
        caption="Voices",
        is_caption_hidden=True,
    )


def _voice_cells(
    run: AnonymizationRun,
    parameters: Sequence[Parameter],
    row: dict[str, Any],
    *,
    has_mixtures: bool,
    has_vectors: bool,
) -> list[Cell | str]:
    speaker = Cell(row["speaker"], aside=str(row["gender"]))
    cells: list[Cell | str] = [row["utterance"], speaker] if row["utterance"] else [speaker, f"{row['utterances']:,}"]
    target = [row["target"] or "none"] if run.target_set else []
    values = [decimals(value, 4) for _, value in row["values"]]
    mixture = [row["mixture"] or "none"] if has_mixtures else []
    vector = [row["vector"] or "none"] if has_vectors else []
    return [*cells, *target, *mixture, *vector, *(values or ["none"] * len(parameters))]


def _find_voice(run: AnonymizationRun, method: Anonymizer, speaker: str, utterance: str) -> PseudoSpeaker | None:
    try:
        return find_voice(run, speaker=speaker, utterance=utterance, method=method)
    except MethodError:  # somebody who came into the corpus after the voices were planned
        return None


def _mixture_text(mixture: Mapping[str, float]) -> str:
    """Return the largest shares of a mixture; empty for a voice that is none."""
    largest = sorted(mixture.items(), key=lambda each: -each[1])[:SHARES_SHOWN]
    rest = len(mixture) - len(largest)
    return ", ".join(f"{name} {decimals(share, 2)}" for name, share in largest) + (f", {rest} more" if rest > 0 else "")
