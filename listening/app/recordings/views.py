"""The page of a new listening test of one's own recordings."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_safe

from listening.app.models import Study
from listening.app.recordings.files import write_test_file
from listening.app.recordings.forms import AnnouncedArchiveForm, OwnTestForm, RepeatedTestForm
from listening.app.studies.views import study_page
from portal.accounts.access import organizer_page
from portal.core.downloads import as_download
from portal.core.fields import show_form
from portal.submissions.pages import upload_of_tests


@organizer_page
def new_own_test(
    request: HttpRequest, *, form_class: type[OwnTestForm | RepeatedTestForm] = OwnTestForm
) -> HttpResponse:
    """Return the form of a test of own recordings, filled in by hand or by the file of another test."""
    given = (request.POST, request.FILES) if request.method == "POST" else (None, None)
    form = form_class(*given, user=request.user)
    if "sha256" in request.POST:
        return _begin_upload(form, request.POST)
    study = form.save() if form.is_valid() else None
    if study is not None:
        messages.success(request, f"{study} is made. It can be launched once its recordings are prepared.")
        return redirect(study)
    return show_form(request, "listening/studies/own.html", form, **upload_of_tests(request.user))


def _begin_upload(form: OwnTestForm | RepeatedTestForm, given: QueryDict) -> HttpResponse:
    """Begin to receive the recordings of a form that was sent without them: its script sends them in parts."""
    form.fields["archive"].required = False
    archive = AnnouncedArchiveForm(given)
    upload = form.begin_upload(archive.cleaned_data) if form.is_valid() & archive.is_valid() else None
    if upload is None:
        sentences = [str(one) for errors in (form.errors, archive.errors) for found in errors.values() for one in found]
        return JsonResponse({"detail": " ".join(sentences)}, status=422)
    where = {"Location": reverse("uploads:detail", args=[upload.pk])}
    return HttpResponse(status=201 if upload.is_new else 200, headers=where)


@require_safe
@study_page
def test_file(request: HttpRequest, study: Study) -> HttpResponse:  # noqa: ARG001
    """Return the file with which the test can be repeated."""
    if not study.is_crossed:
        raise Http404
    response = HttpResponse(write_test_file(study), content_type="application/toml; charset=utf-8")
    return as_download(response, f"{study.name}.toml")
