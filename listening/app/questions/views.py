"""The page on which organizers edit what evaluators are asked, and the page of a trial as evaluators see it."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from listening.app.models import Study
from listening.app.questions.forms import QuestionFormSet
from listening.app.sessions.pages import form_context
from listening.app.studies.interface_words import speak
from listening.app.studies.pages import language_name
from listening.app.studies.rules import DESIGNABLE
from listening.app.studies.views import study_page


@study_page
def questions(request: HttpRequest, study: Study) -> HttpResponse:
    """Return the questions of a study with their form until the launch, and how a trial looks in each language."""
    is_open = study.state in DESIGNABLE
    formset = QuestionFormSet(request.POST if request.method == "POST" else None, study=study)
    saves = formset.is_bound and formset.is_valid()
    if saves and formset.save_for(request.user) is not None:  # type: ignore[attr-defined]
        messages.success(request, "The questions are saved.")
        return redirect("studies:questions", study.name)
    context = {
        "study": study,
        "formset": formset,
        "is_open": is_open,
        "languages": [(language, language_name(language)) for language in study.languages],
    }
    return render(request, "listening/questions/edit.html", context, status=422 if formset.is_bound else 200)


@require_safe
@study_page
def question_preview(request: HttpRequest, study: Study, language: str) -> HttpResponse:
    """Return what a trial asks in a language, by the template of evaluators' pages; nothing can be heard."""
    if language not in study.languages:
        raise Http404
    with speak(study, language):
        return render(request, "listening/questions/preview.html", form_context(study, language))
