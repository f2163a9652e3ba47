"""Trainings of networks: the list, the form, one training with its curves, and what it left."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from django.contrib import messages
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from anonymization.app.network_training.selectors import find_training, seed_for, training_for
from anonymization.app.network_training.services import cancel_training, continue_training
from portal.accounts.access import organizer_page, organizer_read
from portal.core.downloads import as_download, csv_response
from portal.core.fields import posted, show_form
from portal.core.storage import read_stored
from portal.corpora.selectors import corpus_for
from portal.jobs.pages import reload_page
from portal.jobs.services import NotPossible
from portal.systems.exports import pack_files
from portal.systems.network_training import pages
from portal.systems.network_training.forms import NetworkTrainingForm


@organizer_read
def training_list(request: HttpRequest) -> HttpResponse:
    return render(request, "systems/network_training/list.html", pages.list_page(request))


@organizer_page
def new_training(request: HttpRequest, corpus: str) -> HttpResponse:
    """Train a network on speech of a corpus, with the choices of an earlier training of it where one is named."""
    chosen, asked = corpus_for(request.user, corpus), request.GET
    like, decoder = find_training(request.user, chosen, asked.get("like", "")), asked.get("decoder", "")
    form = NetworkTrainingForm(posted(request), corpus=chosen, by=request.user, like=like, decoder=decoder)
    training = form.start() if form.is_valid() else None
    if training is not None:
        return redirect(training)
    return show_form(request, "systems/network_training/new.html", form, corpus=chosen)


@organizer_read
def training_detail(request: HttpRequest, training: int) -> HttpResponse:
    found = training_for(request.user, training)
    return render(request, "systems/network_training/detail.html", pages.training_page(request.user, found))


@organizer_read
def training_live(request: HttpRequest, training: int) -> HttpResponse:
    """Return the part of `training_detail` that renews itself; at the end the whole page is loaded again."""
    live = pages.live_part(training_for(request.user, training))
    if not live["is_active"]:
        return reload_page()
    return render(request, "systems/_training_live.html", live)


@organizer_page
@require_POST
def act(request: HttpRequest, training: int, service: Callable[..., Any]) -> HttpResponse:
    """Change a training; its page then shows the state it has come to."""
    found = training_for(request.user, training)
    try:
        service(found, by=request.user)
    except NotPossible as reason:
        messages.error(request, str(reason))
    return redirect(found)


cancel = partial(act, service=cancel_training)
go_on = partial(act, service=continue_training)


@organizer_read
def card(request: HttpRequest, training: int, seed: int) -> HttpResponse:
    found = seed_for(request.user, training, seed)
    if (content := read_stored(found.files["card.json"])) is None:
        raise Http404
    return as_download(HttpResponse(content, content_type="application/json"), f"{found.file_name}-card.json")


@organizer_read
def losses(request: HttpRequest, training: int, seed: int) -> HttpResponse:
    found = seed_for(request.user, training, seed)
    if not found.losses:
        raise Http404
    return csv_response(f"{found.file_name}-losses.csv", found.losses)


@organizer_read
def download_weights(request: HttpRequest, training: int, seed: int) -> HttpResponse:
    """Return weights, card, losses and what else a training of the shell leaves in its folder."""
    found = seed_for(request.user, training, seed)
    packed = pack_files(found.files)
    response = FileResponse(packed, as_attachment=True, filename=f"{found.file_name}.zip")
    return cast("HttpResponse", response)
