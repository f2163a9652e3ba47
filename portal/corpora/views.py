"""Pages of corpora: what is in them, and the import of a new one."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST

from common.errors import NotPossible
from portal.accounts.access import member_page, organizer_page, organizer_read
from portal.challenges.models import Corpus, Gender, Utterance
from portal.challenges.selectors import corpora_for, managed_corpora_for
from portal.core.fields import posted, show_form
from portal.core.signed_urls import voice_sources
from portal.corpora import selectors, services
from portal.corpora.forms import LAYOUT_NAMES, CorpusForm, CorpusImportForm

PAGE_SIZE = 25


@organizer_read
def corpus_list(request: HttpRequest) -> HttpResponse:
    summaries = selectors.summaries(corpora_for(request.user).filter(archived_at=None))
    return render(request, "corpora/list.html", {"summaries": summaries})


@organizer_page
def import_corpus(request: HttpRequest) -> HttpResponse:
    """Choose a folder on the server; its import is a job. The address may fill in fields (``?name=…&folder=…``).

    Who comes from the form of a new challenge (``?next=challenge``) goes back there, and sees the import end.
    """
    form = CorpusImportForm(posted(request), initial=request.GET.dict())
    job = form.start(by=request.user) if form.is_valid() else None
    if job is not None and form.cleaned_data["next"] == "challenge":
        return redirect(f"{reverse('editions:new')}?{urlencode({'corpus': form.cleaned_data['name']})}")
    if job is not None:
        return redirect(job)
    has_demo = Corpus.objects.filter(name=services.DEMO).exists()
    return show_form(request, "corpora/import.html", form, has_demo=has_demo)


@organizer_page
@require_POST
def import_demo(request: HttpRequest) -> HttpResponse:
    """Import the demo corpus; its job shows how far it is."""
    try:
        return redirect(services.start_demo_import(by=request.user))
    except NotPossible as reason:
        (messages.info if reason.under_way else messages.error)(request, str(reason))
        return redirect(reason.under_way or "corpora:import")


@organizer_read
def corpus_detail(request: HttpRequest, name: str) -> HttpResponse:
    corpus = selectors.corpus_for(request.user, name)
    [summary] = selectors.summaries(corpora_for(request.user).filter(pk=corpus.pk))
    sets = selectors.data_set_table(corpus)
    context = {
        "corpus": corpus,
        "summary": summary,
        "layout": LAYOUT_NAMES[corpus.layout] if corpus.layout else "",
        "data_sets": sets,
        "plan": selectors.plan_table(sets),
        "trials": selectors.trial_table(corpus, sets),
        "systems": corpus.systems.filter(archived_at=None).order_by("name"),
        "imports": selectors.list_imports(corpus),
        "is_owner": corpus.created_by_id == request.user.pk,
        "has_challenge": corpus.editions.filter(organizers=request.user.pk).exists(),
    }
    return render(request, "corpora/detail.html", context)


@organizer_page
@require_POST
def share(request: HttpRequest, name: str) -> HttpResponse:
    """The owner lets all organizers see a corpus, or takes that back."""
    corpus = selectors.corpus_for(request.user, name)
    try:
        services.share_corpus(corpus=corpus, is_shared="shared" in request.POST, by=request.user)
    except NotPossible as reason:
        messages.error(request, str(reason))
    else:
        messages.success(
            request, "All organizers see this corpus." if corpus.is_shared else "This corpus is no longer shared."
        )
    return redirect(corpus)


@organizer_read
def data_set_detail(request: HttpRequest, name: str, data_set: str) -> HttpResponse:
    chosen = selectors.data_set_for(request.user, name, data_set)
    [row] = selectors.data_set_rows(chosen.corpus.data_sets.filter(pk=chosen.pk))
    context = {"corpus": chosen.corpus, "data_set": chosen, "row": row}
    context["trial_lists"] = chosen.trial_lists.select_related("enrolment_set__corpus")
    return render(request, "corpora/data_set.html", context | _utterance_page(request, chosen.utterances.all()))


@member_page
def edit(request: HttpRequest, name: str) -> HttpResponse:
    """Give a corpus another short name, or state its licence and where it was published."""
    corpus = get_object_or_404(managed_corpora_for(request.user), name=name)
    form = CorpusForm(posted(request), instance=corpus)
    changed = form.save_changes(by=request.user) if form.is_valid() else None
    if changed is not None:
        messages.success(request, "The changes are saved.")
        return redirect("corpora:detail", changed.name)
    back = reverse("corpora:detail", args=[name])
    return show_form(request, "edit.html", form, kind="corpus", name=name, back=back)


@organizer_read
def speaker_list(request: HttpRequest, name: str) -> HttpResponse:
    corpus = selectors.corpus_for(request.user, name)
    page = Paginator(selectors.speaker_table(corpus), PAGE_SIZE).get_page(request.GET.get("page"))
    return render(request, "corpora/speakers.html", {"corpus": corpus, "page": page})


@organizer_read
def utterance_list(request: HttpRequest, name: str) -> HttpResponse:
    corpus = selectors.corpus_for(request.user, name)
    context = {"corpus": corpus} | _utterance_page(request, corpus.utterances.all())
    return render(request, "corpora/utterances.html", context)


@organizer_read
def utterance_detail(request: HttpRequest, name: str, utterance: str) -> HttpResponse:
    chosen = selectors.utterance_for(request.user, name, utterance)
    context = {
        "corpus": chosen.corpus,
        "utterance": chosen,
        "data_sets": chosen.data_sets.select_related("corpus"),
        "player": _player(request, chosen),
        "versions": chosen.submitted_files.select_related("submission__system", "data_set"),
    }
    return render(request, "corpora/utterance.html", context)


def _player(request: HttpRequest, utterance: Utterance) -> dict[str, Any] | None:
    """Return what the player component needs; None while the audio is missing."""
    if not utterance.audio:
        return None
    return {"title": "Recording", "sources": voice_sources(request, {"original": utterance.audio})}


def _utterance_page(request: HttpRequest, utterances: QuerySet[Utterance]) -> dict[str, Any]:
    search = {key: request.GET.get(key, "").replace("\0", "").strip() for key in ("text", "gender", "speaker")}
    found = selectors.search_utterances(utterances, **search)
    page = Paginator(found, PAGE_SIZE).get_page(request.GET.get("page"))
    return {"page": page, "search": search, "genders": Gender.choices}
