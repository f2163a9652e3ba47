"""The pages of what the portal's own methods did: a run with its voices and checks, and the picture of one instant."""

from __future__ import annotations

from typing import TextIO, cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from anonymization.methods.target_files import targets_as_csv
from anonymization.methods.voice_files import write_voices
from anonymization.targets import targets_of
from anonymization.voice_checks import assignments_of
from portal.accounts.access import member_page
from portal.results.anonymization_pages import organized_run, run_page
from portal.results.explanation_pages import explanation_file
from portal.submissions.selectors import file_for, system_for


@require_safe
@member_page
def explanation(request: HttpRequest, name: str, pk: int) -> HttpResponse:
    """What the method did to one instant of an utterance, drawn."""
    return explanation_file(request, file_for(request.user, name, pk))


@require_safe
@member_page
def run_detail(request: HttpRequest, name: str, data_set: str) -> HttpResponse:
    """A run of a method on a data set: settings, voices, checks."""
    system = system_for(request.user, name)
    return render(request, "systems/run.html", run_page(request, system, data_set))


@require_safe
@member_page
def voices_csv(request: HttpRequest, name: str, data_set: str) -> HttpResponse:
    """The voices of a run, as a file that the command line reads, or its targets; for organizers."""
    run, names = organized_run(request, system_for(request.user, name), data_set)
    what = "targets" if run.target_selection else "voices"
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}-{data_set}-{what}.csv"'
    if run.target_selection:
        rows = targets_of(run.submission, run.data_set)
        response.write(targets_as_csv(("", utterance, target) for utterance, target in rows.items()))
        return response
    write_voices(cast("TextIO", response), assignments_of(run), names)
    return response
