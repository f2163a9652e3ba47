"""Pages of studies for organizers: list, new, edit, texts, planner, design with certificate, and every deed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from listening.design.plan import DesignError
from listening.models import Study
from listening.studies import designing, designs, planning, preparing, selectors, services, study_pages
from listening.studies.study_forms import ExtendForm, NewStudyForm, StudyForm, TextForm
from listening.studies.study_rules import StudyProblems
from portal.accounts.access import member_page
from portal.jobs.services import NotPossible

PAGE_SIZE = 25
REFUSED = 409


@require_safe
@member_page
def study_list(request: HttpRequest) -> HttpResponse:
    """The studies of the editions that this person organises, or of one of them (``?edition=…``)."""
    editions = selectors.editions_to_study(request.user)
    name = request.GET.get("edition", "")
    edition = selectors.edition_to_study(request.user, name) if name else None
    studies = selectors.studies_with_counts(request.user, edition)
    page = Paginator(studies, PAGE_SIZE).get_page(request.GET.get("page"))
    rows = study_pages.study_rows(page.object_list)
    context = {"page": page, "rows": rows, "edition": edition, "editions": editions}
    return render(request, "studies/list.html", context)


@member_page
def new_study(request: HttpRequest) -> HttpResponse:
    selectors.editions_to_study(request.user)
    name = request.GET.get("edition", "")
    edition = selectors.edition_to_study(request.user, name) if name else None
    data = request.POST if request.method == "POST" else None
    form = NewStudyForm(data, user=request.user, edition=edition)
    study = form.save() if form.is_valid() else None
    if study is not None:
        messages.success(request, f"The study {study} is made, with what the edition holds. Check it now.")
        return redirect("studies:edit", study.name)
    return render(request, "studies/new.html", {"form": form}, status=422 if form.errors else 200)


@require_safe
@member_page
def study_detail(request: HttpRequest, study: str) -> HttpResponse:
    return _detail(request, selectors.study_for(request.user, study))


@member_page
def edit_study(request: HttpRequest, study: str) -> HttpResponse:
    chosen = selectors.study_for(request.user, study)
    form = StudyForm(request.POST if request.method == "POST" else None, study=chosen)
    changed = form.save(by=request.user) if form.is_valid() else None
    if changed is not None:
        messages.success(request, "The study is saved.")
        return redirect(changed)
    context = {"study": chosen, "form": form} | planning.planner(chosen, form)
    return render(request, "studies/edit.html", context, status=422 if form.errors else 200)


@require_safe
@member_page
def planner(request: HttpRequest, study: str) -> HttpResponse:
    """What the numbers of the form would give: a part of the page of a study."""
    chosen = selectors.study_for(request.user, study)
    form = StudyForm(request.GET or None, study=chosen)
    return render(request, "studies/_planner.html", {"study": chosen} | planning.planner(chosen, form))


@member_page
def texts(request: HttpRequest, study: str) -> HttpResponse:
    """A text of a study in a language (``?kind=…&language=…``), its form and its history."""
    chosen = selectors.study_for(request.user, study)
    kind, language = study_pages.chosen_text(chosen, request.GET)
    data = request.POST if request.method == "POST" else None
    form = TextForm(data, study=chosen, kind=kind, language=language)
    if form.is_valid() and not (form.save(by=request.user) is None and form.errors):
        messages.success(request, "Evaluators read this version from now on.")
        return redirect(request.get_full_path())
    context = study_pages.text_page(chosen, kind, language) | {"form": form}
    return render(request, "studies/texts.html", context, status=422 if form.errors else 200)


@member_page
def design(request: HttpRequest, study: str) -> HttpResponse:
    """The design with its certificate; a post makes it anew, at once or as a job."""
    chosen = selectors.study_for(request.user, study)
    problems: list[str] = []
    if request.method == "POST":
        try:
            job = designing.start_design(chosen, request.user)
        except DesignError as error:
            problems = error.problems
        except NotPossible as reason:
            problems = [str(reason)]
        else:
            if job is None:
                messages.success(request, "The design is made and certified.")
            return redirect("studies:design", chosen.name)
    context = study_pages.design_page(chosen) | {"problems": problems}
    return render(request, "studies/design.html", context, status=422 if problems else 200)


@require_safe
@member_page
def certificate(request: HttpRequest, study: str) -> HttpResponse:
    """The certificate as a file."""
    chosen = selectors.study_for(request.user, study)
    if not chosen.certificate:
        raise Http404
    text = json.dumps(chosen.certificate, ensure_ascii=False, indent=2, sort_keys=True)
    response = HttpResponse(text + "\n", content_type="application/json; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{chosen.name}-certificate.json"'
    return response


@member_page
@require_POST
def prepare(request: HttpRequest, study: str) -> HttpResponse:
    return _act(request, study, lambda chosen: preparing.prepare_study(chosen, request.user))


@member_page
@require_POST
def preview(request: HttpRequest, study: str) -> HttpResponse:
    """A session of the organizer's own; it opens at once."""
    chosen = selectors.study_for(request.user, study)
    try:
        return redirect(services.preview_session(study=chosen, by=request.user))
    except NotPossible as reason:
        return _detail(request, chosen, [str(reason)])


@member_page
@require_POST
def launch(request: HttpRequest, study: str) -> HttpResponse:
    return _act(request, study, lambda one: services.launch_study(study=one, by=request.user, now=timezone.now()))


@member_page
@require_POST
def pause(request: HttpRequest, study: str) -> HttpResponse:
    return _act(request, study, lambda one: services.pause_study(study=one, by=request.user))


@member_page
@require_POST
def resume(request: HttpRequest, study: str) -> HttpResponse:
    return _act(request, study, lambda one: services.resume_study(study=one, by=request.user))


@member_page
@require_POST
def close(request: HttpRequest, study: str) -> HttpResponse:
    return _act(request, study, lambda one: services.close_study(study=one, by=request.user, now=timezone.now()))


@member_page
def extend(request: HttpRequest, study: str) -> HttpResponse:
    chosen = selectors.study_for(request.user, study)
    form = ExtendForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            designs.extend_design(chosen, form.cleaned_data["blocks"], request.user)
        except DesignError as error:
            form.add_error(None, error.problems)
        except NotPossible as reason:
            form.add_error(None, str(reason))
        else:
            messages.success(request, f"Blocks for {form.cleaned_data['blocks']} more evaluators are open.")
            return redirect(chosen)
    context = {"study": chosen, "form": form} | study_pages.extend_page(chosen)
    return render(request, "studies/extend.html", context, status=422 if form.errors else 200)


def _act(request: HttpRequest, name: str, deed: Callable[[Study], Any]) -> HttpResponse:
    """Do something to a study; its page then shows what came of it, or everything that stands in the way."""
    chosen = selectors.study_for(request.user, name)
    try:
        deed(chosen)
    except StudyProblems as error:
        return _detail(request, chosen, error.sentences)
    except DesignError as error:
        return _detail(request, chosen, error.problems)
    except NotPossible as reason:
        return _detail(request, chosen, [str(reason)])
    return redirect(chosen)


def _detail(request: HttpRequest, study: Study, problems: list[str] | None = None) -> HttpResponse:
    context = study_pages.study_page(study, request) | {"problems": problems or []}
    return render(request, "studies/detail.html", context, status=REFUSED if problems else 200)
