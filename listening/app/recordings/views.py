"""The page of a new listening test of one's own recordings."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from listening.app.models import Study
from listening.app.recordings.files import write_test_file
from listening.app.recordings.forms import OwnTestForm, RepeatedTestForm
from listening.app.studies.views import study_page
from portal.accounts.access import organizer_page
from portal.core.downloads import as_download
from portal.core.fields import show_form


@organizer_page
def new_own_test(
    request: HttpRequest, *, form_class: type[OwnTestForm | RepeatedTestForm] = OwnTestForm
) -> HttpResponse:
    """Return the form of a test of own recordings, filled in by hand or by the file of another test."""
    given = (request.POST, request.FILES) if request.method == "POST" else (None, None)
    form = form_class(*given, user=request.user)
    study = form.save() if form.is_valid() else None
    if study is not None:
        messages.success(request, f"{study} is made. It can be launched once its recordings are prepared.")
        return redirect(study)
    return show_form(request, "listening/studies/own.html", form)


@require_safe
@study_page
def test_file(request: HttpRequest, study: Study) -> HttpResponse:  # noqa: ARG001
    """Return the file with which the test can be repeated."""
    if not study.is_crossed:
        raise Http404
    response = HttpResponse(write_test_file(study), content_type="application/toml; charset=utf-8")
    return as_download(response, f"{study.name}.toml")
