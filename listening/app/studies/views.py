"""Pages of studies for organizers: list, new, edit, planner, design with certificate, and each action."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from common.errors import NotPossible, ProblemsError
from listening.app.models import Study
from listening.app.studies import pages, rules, selectors, services
from listening.app.studies.forms import ExtendForm, NewStudyForm, StudyForm
from listening.app.studies.sizes import explain_size
from portal.accounts.access import View, member_action, member_page
from portal.challenges.models import Edition
from portal.core.downloads import as_download

PAGE_SIZE = 25
REFUSED = 409


def study_page(view: View) -> View:
    """Return a page of a study for its organizers; the view gets the study in place of its name."""
    return member_page(_with_study(view))


def study_post(view: View) -> View:
    """Act like `study_page`, for posts alone: another method is refused before any study is looked for."""
    return member_action(_with_study(view))


def _with_study(view: View) -> View:
    @wraps(view)
    def found(request: HttpRequest, study: str, **where: Any) -> HttpResponse:
        studies = selectors.studies_for(request.user).select_related("job")
        return view(request, get_object_or_404(studies, name=study), **where)

    return found


def study_action(
    *, leads_on: bool = False, asks: Callable[[Study], dict[str, Any]] | None = None
) -> Callable[[Callable[[Study, Any], Any]], View]:
    """Make what is done to a study, by whom, a post; its page then shows what came of it, or all that is in the way.

    Args:
        leads_on: to what came of it, instead of the page of the study.
        asks: what a page says before it is done; without it there is no such page.
    """

    def make(act: Callable[[Study, Any], Any]) -> View:
        @(study_page if asks else study_post)
        def acting(request: HttpRequest, study: Study) -> HttpResponse:
            if asks and request.method != "POST":
                return render(request, "listening/studies/launch.html", asks(study))
            try:
                made = act(study, request.user)
            except ValidationError as error:
                return _detail(request, study, error.messages)
            except ProblemsError as error:
                return _detail(request, study, error.problems)
            except NotPossible as reason:
                return _detail(request, study, [str(reason)])
            return redirect(made if leads_on else study)

        return acting

    return make


def _detail(request: HttpRequest, study: Study, problems: list[str] | None = None) -> HttpResponse:
    context = pages.study_page(study, request) | {"problems": problems or []}
    return render(request, "listening/studies/detail.html", context, status=REFUSED if problems else 200)


def _chosen_edition(request: HttpRequest) -> Edition | None:
    name = request.GET.get("edition", "")
    return selectors.edition_to_study(request.user, name) if name else None


@require_safe
@member_page
def study_list(request: HttpRequest) -> HttpResponse:
    """Return the studies of the editions that this person organises, or of one of them (``?edition=…``)."""
    no_edition, edition = selectors.explain_no_edition(request.user), _chosen_edition(request)
    studies = selectors.studies_with_counts(request.user, edition)
    page = Paginator(studies, PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "page": page,
        "studies": pages.list_studies(page.object_list),
        "edition": edition,
        "no_edition": no_edition,
        "has_archived": not page.object_list and selectors.has_archived(request.user, edition),
        "query": f"?{urlencode({'edition': edition.name})}" if edition else "",
    }
    return render(request, "listening/studies/list.html", context)


@member_page
def new_study(request: HttpRequest) -> HttpResponse:
    no_edition = selectors.explain_no_edition(request.user)
    data = request.POST if request.method == "POST" else None
    form = NewStudyForm(data, user=request.user, edition=_chosen_edition(request))
    study = form.save() if form.is_valid() else None
    if study is not None:
        messages.success(request, f"{study} was created from the edition. “Edit” changes its settings.")
        if smaller := explain_size(study, form.cleaned_data["size"]):
            messages.info(request, smaller)
        return redirect(study)
    context = {"form": form, "no_edition": no_edition}
    return render(request, "listening/studies/new.html", context, status=422 if form.errors else 200)


study_detail = require_safe(study_page(_detail))


@study_page
def edit_study(request: HttpRequest, study: Study) -> HttpResponse:
    form = StudyForm(request.POST if request.method == "POST" else None, study=study)
    changed = form.save(by=request.user) if form.is_valid() else None
    if changed is not None:
        messages.success(request, "The listening test is saved.")
        return redirect(changed)
    context = {"study": study, "form": form} | pages.planner(study, form, seconds=0)
    return render(request, "listening/studies/edit.html", context, status=422 if form.errors else 200)


@require_safe
@study_page
def planner(request: HttpRequest, study: Study) -> HttpResponse:
    """Return what the numbers of the form would give: a part of the page of a study."""
    form = StudyForm(request.GET or None, study=study)
    return render(request, "listening/studies/_planner.html", {"study": study} | pages.planner(study, form))


@study_page
def design(request: HttpRequest, study: Study) -> HttpResponse:
    """Return the design with its certificate; a post makes it again, at once or as a job."""
    problems: list[str] = []
    if request.method == "POST":
        try:
            if services.start_design(study, request.user) is None:
                messages.success(request, "The design is made and certified.")
            return redirect("studies:design", study.name)
        except ProblemsError as error:
            problems = error.problems
        except NotPossible as reason:
            problems = [str(reason)]
    context = pages.design_page(study) | {"problems": problems}
    return render(request, "listening/studies/design.html", context, status=422 if problems else 200)


@require_safe
@study_page
def certificate(request: HttpRequest, study: Study) -> HttpResponse:  # noqa: ARG001
    """Return the certificate as a file."""
    if not study.certificate:
        raise Http404
    text = json.dumps(study.certificate, ensure_ascii=False, indent=2, sort_keys=True)
    response = HttpResponse(text + "\n", content_type="application/json; charset=utf-8")
    return as_download(response, f"{study.name}-certificate.json")


@study_action()
def prepare(study: Study, by: Any) -> None:
    services.prepare_study(study, by)


@study_action(leads_on=True)
def preview(study: Study, by: Any) -> Any:
    return services.preview_session(study=study, by=by)


@study_action(asks=pages.ask_to_launch)
def launch(study: Study, by: Any) -> None:
    services.launch_study(study=study, by=by, now=timezone.now())


@study_action()
def pause(study: Study, by: Any) -> None:
    services.pause_study(study=study, by=by)


@study_action()
def resume(study: Study, by: Any) -> None:
    services.resume_study(study=study, by=by)


@study_page
def extend(request: HttpRequest, study: Study) -> HttpResponse:
    form = ExtendForm(request.POST if request.method == "POST" else None)
    if form.is_valid() and form.save(study, request.user):
        many = form.cleaned_data["blocks"]
        said = "A block for 1 more evaluator is" if many == 1 else f"Blocks for {many} more evaluators are"
        messages.success(request, f"{said} open.")
        return redirect(study)
    context = {
        "study": study,
        "form": form,
        "blocks": study.blocks.count(),
        "can_extend": study.state in rules.LAUNCHED,
    }
    return render(request, "listening/studies/extend.html", context, status=422 if form.errors else 200)
