"""Pages on which organizers read and change what evaluators read: the texts of a study, and the words of buttons."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from listening.app.models import Study
from listening.app.studies.interface_words import ships_words, translations_of, write_words
from listening.app.studies.views import study_page
from listening.app.texts import pages
from listening.app.texts.forms import TextForm, WordsFileForm, WordsForm
from portal.core.downloads import as_download


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
    """Show the words of buttons and hints in a language: a form with all of them, and one for a file of them."""
    _require_own_words(study, language)
    is_file = request.method == "POST" and "upload" in request.POST
    form = WordsForm(request.POST if request.method == "POST" and not is_file else None, study=study, language=language)
    file_form = WordsFileForm(
        request.POST if is_file else None, request.FILES if is_file else None, study=study, language=language
    )
    sent = file_form if is_file else form
    if sent.is_valid() and not (sent.save(by=request.user) is None and sent.errors):
        messages.success(request, "Evaluators read these words from now on.")
        return redirect(request.path)
    context = pages.words_page(study, language) | {"form": form, "file_form": file_form}
    return render(request, "listening/texts/words.html", context, status=422 if sent.errors else 200)


@require_safe
@study_page
def words_file(request: HttpRequest, study: Study, language: str) -> HttpResponse:  # noqa: ARG001
    """Send all words of buttons and hints with what is translated, to be filled in."""
    _require_own_words(study, language)
    text = "\ufeff" + write_words(language, translations_of(study, language))  # by which spreadsheets know UTF-8
    response = HttpResponse(text, content_type="text/csv; charset=utf-8")
    return as_download(response, f"{study.name}-words-{language}.csv")


def _require_own_words(study: Study, language: str) -> None:
    if language not in study.languages or ships_words(language):
        raise Http404
