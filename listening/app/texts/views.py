"""Pages on which organizers read and change what evaluators read: the texts of a study, and the words of buttons."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from listening.app.models import Study
from listening.app.studies.interface_words import ships_words
from listening.app.studies.views import study_page
from listening.app.texts import pages
from listening.app.texts.forms import TextForm, WordsForm


@study_page
def texts(request: HttpRequest, study: Study) -> HttpResponse:
    """Return a text of a study in a language (``?kind=…&language=…``), its form and its history."""
    kind, language = pages.chosen_text(study, request.GET)
    form = TextForm(request.POST if request.method == "POST" else None, study=study, kind=kind, language=language)
    if form.is_valid() and not (form.save(by=request.user) is None and form.errors):
        messages.success(request, "Evaluators read this version from now on.")
        return redirect(request.get_full_path())
    context = pages.text_page(study, kind, language) | {"form": form}
    return render(request, "listening/texts/texts.html", context, status=422 if form.errors else 200)


@study_page
def words(request: HttpRequest, study: Study, language: str) -> HttpResponse:
    """Show the words of buttons and hints in a language, a field for each."""
    if language not in study.languages or ships_words(language):
        raise Http404
    form = WordsForm(request.POST if request.method == "POST" else None, study=study, language=language)
    if form.is_valid() and not (form.save(by=request.user) is None and form.errors):
        messages.success(request, "Evaluators read these words from now on.")
        return redirect(request.path)
    context = pages.words_page(study, language) | {"form": form}
    return render(request, "listening/texts/words.html", context, status=422 if form.errors else 200)
