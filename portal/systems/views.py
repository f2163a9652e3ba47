"""The pages and files of systems, of the anonymisation that made them, and of what the portal's own engines found."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TextIO, cast

from django.contrib import messages
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from anonymization.app.network_training.selectors import find_network
from anonymization.app.voice_assignment import find_targets, list_assignments
from anonymization.methods.voices.files import write_targets_csv, write_voices
from common.errors import NotPossible
from evaluation.app.attacker_training.selectors import find_training
from evaluation.app.attacks.selectors import list_attacks
from evaluation.app.models import EvaluationRun
from evaluation.app.recognizer_training.services import start_retraining
from evaluation.app.runs.kinds import ATTACK, RECOGNITION, RETRAINED, RunKind
from evaluation.app.runs.selectors import EngineRuns
from evaluation.app.runs.services import cancel_run, continue_run
from portal.accounts.access import member_action, member_page, member_read, open_read, organizer_page
from portal.core.clock import read_clock
from portal.core.downloads import as_download, csv_response, latex_response
from portal.core.fields import posted, show_form
from portal.core.signed_urls import CONTENT_TYPES, open_stored, secured
from portal.corpora.selectors import corpus_for
from portal.jobs.pages import reload_page
from portal.leaderboard.figures import draw_file
from portal.leaderboard.views import answer_figure
from portal.submissions.selectors import editable_systems_for, file_for, managed_systems_for
from portal.submissions.services import offer_parts, release_parts, rename_system, take_part_back
from portal.submissions.views import file_name
from portal.systems import exports, pages
from portal.systems.anonymization import pages as anonymization
from portal.systems.anonymization.forms import BaselineForm
from portal.systems.attacker_training import pages as training_pages
from portal.systems.attacker_training.forms import TrainingForm
from portal.systems.attacks import pages as attack_pages
from portal.systems.engines.forms import AttackForm, EngineForm, RecognitionForm, list_unfinished, organized_run
from portal.systems.forms import SystemForm
from portal.systems.objective_results import pages as objective
from portal.systems.recognition import pages as recognition_pages
from portal.systems.selectors import (
    View,
    edition_of,
    member_view,
    numbers_view,
    organized_view,
    own_view,
)
from portal.systems.utterances import pages as utterances

Page = Callable[..., HttpResponse]
Respond = Callable[[str, Any], HttpResponse]


def _shown_json(_: str, data: Any) -> JsonResponse:
    """Return data that a browser shows."""
    return JsonResponse(data, json_dumps_params={"indent": 1})


def _numbers_file(ending: str, respond: Respond, make: Callable[[View], Any]) -> Page:
    """Return a file of numbers, for those who may see them."""

    @open_read
    def numbers_file(request: HttpRequest, name: str) -> HttpResponse:
        return respond(f"{name}-{ending}", make(numbers_view(request, name)))

    return numbers_file


# Systems -------------------------------------------------------------------------------------------


@member_read
def system_list(request: HttpRequest) -> HttpResponse:
    return render(request, "systems/list.html", pages.list_page(request))


@organizer_page
def new_baseline(request: HttpRequest, corpus: str) -> HttpResponse:
    """Run an anonymiser over data sets of a corpus, with a network that was trained here where one is named."""
    chosen, asked = corpus_for(request.user, corpus), request.GET
    network = find_network(request.user, asked["network"]) if "network" in asked else None
    edition = asked.get("edition", "")
    form = BaselineForm(posted(request), corpus=chosen, by=request.user, edition=edition, network=network)
    if "try" in request.POST:
        form.start_trial()
        return redirect(request.get_full_path())
    system = form.start() if form.is_valid() else None
    if system is not None:
        return redirect(system)
    return show_form(request, "systems/new.html", form, corpus=chosen)


@open_read
def system_detail(request: HttpRequest, name: str) -> HttpResponse:
    """Return the numbers of a system; in an edition those of its submission, and what a visitor may see beside them."""
    view = numbers_view(request, name)
    if view.system.edition is None:
        template, context = "systems/detail.html", pages.system_page(request, view.system)
    else:
        template, context = "systems/evaluated.html", objective.edition_system_page(request, view)
        context |= pages.shared_parts(request, view)
    context["may_manage"] = managed_systems_for(request.user).filter(pk=view.system.pk).exists()
    context["may_edit"] = context["may_manage"] or view.is_owner
    return render(request, template, context | attack_pages.portal_evaluation_sections(view, context.get("values")))


@member_page
def edit(request: HttpRequest, name: str) -> HttpResponse:
    """Give a system another title, or a baseline without an edition another short name."""
    system = get_object_or_404(editable_systems_for(request.user), name=name)
    form = SystemForm(posted(request), instance=system)
    if form.is_valid():
        rename_system(system=system, by=request.user, **form.cleaned_data)
        messages.success(request, "The changes are saved.")
        return redirect("systems:detail", system.name)
    back = reverse("systems:detail", args=[name])
    return show_form(request, "edit.html", form, kind="system", name=name, back=back)


@open_read
def det_figure(request: HttpRequest, name: str, extension: str) -> HttpResponse:
    """Return the DET curves of listeners and attackers, as a file."""
    view = numbers_view(request, name)
    if view.system.edition is None:
        raise Http404
    figure = objective.listeners_of(request, view, objective.load_numbers(view)).get("figure")
    drawing = figure["drawing"] if figure else None
    return answer_figure(request, partial(draw_file, drawing, extension), f"{name}-det.{extension}")


@open_read
def description(request: HttpRequest, name: str) -> HttpResponse:
    """Return the description that is released: to be saved, never shown, because a stranger wrote it."""
    view = numbers_view(request, name)
    part = pages.shared_parts(request, view)["description"]
    if part is None:
        raise Http404
    stored = open_stored(part.document.key)
    response = FileResponse(
        stored, as_attachment=True, filename=file_name(part.document), content_type=CONTENT_TYPES[".pdf"]
    )
    return cast("HttpResponse", secured(response, 0))


@member_action
def share(request: HttpRequest, name: str) -> HttpResponse:
    """Offer parts of a submission to everybody, release them, or take one back."""
    view = own_view(request, name)
    edition_of(view.system)
    given, now = request.POST, read_clock()
    given_by: dict[str, Any] = {"by": request.user, "relations": view.relations}
    try:
        if "offer" in given:
            parts = pages.find_offered(view, given["offer"])
            offer_parts(submission=view.submission, parts=parts, now=now, **given_by)
            messages.success(request, pages.describe_offer(view, parts))
        elif "release" in given and view.is_organizer:
            release_parts(submissions=[view.submission], by=request.user, now=now)
        elif (part := pages.find_part(view, given.get("back", ""))) is not None:
            take_part_back(part=part, **given_by)
    except NotPossible as reason:
        messages.error(request, str(reason))
    return redirect(f"{view.system.get_absolute_url()}{view.query}#samples")


@member_read
def system_progress(request: HttpRequest, name: str) -> HttpResponse:
    """Return the live part of `system_detail`."""
    view = member_view(request, name)
    progress = pages.describe_progress(view.submission)
    if not progress.is_active:
        return reload_page()
    return render(request, "systems/_progress.html", view.context | {"progress": progress})


values_csv = _numbers_file("values.csv", csv_response, lambda view: exports.value_rows(view.system, view.submission))
objective_csv = _numbers_file("objective.csv", csv_response, exports.objective_rows)
objective_json = _numbers_file("objective.json", _shown_json, exports.objective_as_dict)
objective_latex = _numbers_file("objective.tex", latex_response, exports.objective_as_latex)


# Utterances ----------------------------------------------------------------------------------------


@member_read
def measure_list(request: HttpRequest, name: str, data_set: str) -> HttpResponse:
    """Return every utterance of a data set with its measures, in the order asked for."""
    page = utterances.data_set_page(request, member_view(request, name), data_set)
    return render(request, "systems/data_set.html", page)


@member_read
def measures_csv(request: HttpRequest, name: str, data_set: str) -> HttpResponse:
    rows = exports.measure_rows(utterances.find_run(member_view(request, name), data_set))
    return csv_response(f"{name}-{data_set}-measures.csv", rows)


@member_read
def compare(request: HttpRequest, name: str, pk: int) -> HttpResponse:
    """Original and anonymised utterance side by side, to listen and to look at."""
    file = file_for(request.user, name, pk)
    return render(request, "systems/compare.html", utterances.compare_page(request, file))


# What the portal's own methods did -----------------------------------------------------------------


@member_read
def run_detail(request: HttpRequest, name: str, data_set: str) -> HttpResponse:
    """Show a run of a method on a data set: settings, voices, checks."""
    return render(request, "systems/run.html", anonymization.run_page(request, member_view(request, name), data_set))


@member_read
def voices_csv(request: HttpRequest, name: str, data_set: str) -> HttpResponse:
    """Return the voices of a run, as a file that the command line reads, or its targets; for organizers."""
    run, names = anonymization.find_voices(organized_view(request, name), data_set)
    what = "targets" if run.target_selection else "voices"
    response = as_download(HttpResponse(content_type="text/csv; charset=utf-8"), f"{name}-{data_set}-{what}.csv")
    if run.target_selection:
        rows = find_targets(run.submission, run.data_set)
        response.write(write_targets_csv(("", utterance, target) for utterance, target in rows.items()))
    else:
        write_voices(cast("TextIO", response), list_assignments(run), names)
    return response


# Attacks and recognition ---------------------------------------------------------------------------


@open_read
def attacks(request: HttpRequest, name: str) -> HttpResponse:
    """Show what the portal's attacks reached against a system."""
    return render(request, "systems/attacks.html", attack_pages.attack_page(request, numbers_view(request, name)))


@open_read
def recognition(request: HttpRequest, name: str) -> HttpResponse:
    """Show what the portal's own recognisers understood of a system."""
    page = recognition_pages.recognition_page(request, numbers_view(request, name))
    return render(request, "systems/recognition.html", page)


attacks_csv = _numbers_file("attacks.csv", csv_response, exports.attack_rows)
attacks_json = _numbers_file("attacks.json", _shown_json, exports.attacks_as_dict)
recognition_csv = _numbers_file("word-errors.csv", csv_response, recognition_pages.rate_rows)
retrained_csv = _numbers_file("phone-errors.csv", csv_response, recognition_pages.phone_rows)


@member_read
def utterances_csv(request: HttpRequest, name: str) -> HttpResponse:
    """Return every utterance with its errors and texts, for the system's own people."""
    return csv_response(f"{name}-utterances.csv", recognition_pages.utterance_rows(member_view(request, name)))


@member_read
def attack_scores(request: HttpRequest, name: str, run: int, score_set: int) -> HttpResponse:
    """Return the Kaldi score file of one test, for the system's own people: it names speakers and utterances."""
    for one in list_attacks(member_view(request, name).submission):
        for found in one.score_sets if one.run.pk == run else ():
            if found.pk == score_set:
                file_name = f"{name}-{one.engine.name}-{found.data_set}-{found.attack_model}-scores.txt"
                return _stored_file(one.scores_key(found), file_name)
    raise Http404


@member_read
def attack_archive(request: HttpRequest, name: str, run: int) -> HttpResponse:
    """Return the results directory of an attack in the official layout, for the system's own people."""
    for one in list_attacks(member_view(request, name).submission):
        if one.run.pk == run:
            return _stored_file(one.archive_key, f"{name}-{one.engine.name}-results.zip")
    raise Http404


def _stored_file(key: str, file_name: str) -> HttpResponse:
    return cast("HttpResponse", FileResponse(open_stored(key), as_attachment=True, filename=file_name))


def _new_run(form_class: type[EngineForm], back: str, back_title: str) -> Page:
    """Return a page that starts an engine on a system."""

    @member_page
    def new_run(request: HttpRequest, name: str) -> HttpResponse:
        view = organized_view(request, name)
        form = form_class(posted(request), submission=view.submission, by=request.user)
        address = f"{reverse(back, args=[name])}{view.query}"
        if form.is_valid() and form.start() is not None:
            if form.under_way:
                messages.info(request, form.under_way)
            return redirect(address)
        return show_form(request, "systems/engine_new.html", form, back=address, back_title=back_title, **view.context)

    return new_run


new_attack = _new_run(AttackForm, "systems:attacks", "Attacks")
new_recognition = _new_run(RecognitionForm, "systems:recognition", "Recognition")


def _engine_progress(kind: RunKind, address: str) -> Page:
    """The live part of the page of such runs."""

    @member_read
    def engine_progress(request: HttpRequest, name: str) -> HttpResponse:
        view = member_view(request, name)
        runs = list_unfinished(view, kind)
        if runs is None or not runs.active:
            return reload_page()
        context = view.context | {"runs": EngineRuns(runs.active, []), "address": reverse(address, args=[name])}
        return render(request, "systems/_engine_runs.html", context)

    return engine_progress


attack_progress = _engine_progress(ATTACK, "systems:attack-progress")
recognition_progress = _engine_progress(RECOGNITION, "systems:recognition-progress")
retraining_progress = _engine_progress(RETRAINED, "systems:retraining-progress")


@member_page
@require_POST
def retrain(request: HttpRequest, name: str) -> HttpResponse:
    """Train recognisers on the training speech of a system; for its organizers."""
    view = organized_view(request, name)
    try:
        start_retraining(submission=view.submission, by=request.user)
    except NotPossible as reason:
        (messages.info if reason.under_way else messages.error)(request, str(reason))
    return redirect(f"{reverse('systems:recognition', args=[name])}{view.query}#retrained")


@member_page
@require_POST
def act_on_run(
    request: HttpRequest, name: str, run: int, service: Callable[[EvaluationRun, Any], None]
) -> HttpResponse:
    """Change a run; its page then shows the state it has come to."""
    found = organized_run(organized_view(request, name), run)
    try:
        service(found, request.user)
    except NotPossible as reason:
        messages.error(request, str(reason))
    is_attack = found.kind == EvaluationRun.Kind.ATTACK
    return redirect("systems:attacks" if is_attack else "systems:recognition", name)


cancel_engine_run = partial(act_on_run, service=cancel_run)
continue_engine_run = partial(act_on_run, service=continue_run)


# Trained attackers ---------------------------------------------------------------------------------


@member_read
def training_list(request: HttpRequest, name: str) -> HttpResponse:
    return render(request, "systems/trainings.html", training_pages.list_page(own_view(request, name)))


@member_page
def new_training(request: HttpRequest, name: str) -> HttpResponse:
    """Train an attacker on a system; for its organizers."""
    view = organized_view(request, name)
    form = TrainingForm(posted(request), submission=view.submission, by=request.user)
    run = form.start() if form.is_valid() else None
    if run is not None:
        return redirect("systems:training", name, run.pk)
    return show_form(request, "systems/training_new.html", form, **view.context)


@member_read
def training_detail(request: HttpRequest, name: str, training: int) -> HttpResponse:
    view = own_view(request, name)
    page = training_pages.training_page(view, training)
    return render(request, "systems/training.html", page | attack_pages.training_attacks(view, page["run"]))


@member_read
def training_live(request: HttpRequest, name: str, training: int) -> HttpResponse:
    """Return the part of `training_detail` that renews itself."""
    view = own_view(request, name)
    run = find_training(view.submission, training)
    if run.job is None or run.job.has_ended:
        return reload_page()
    return render(request, "systems/_training_live.html", view.context | training_pages.live_part(view, run))


@member_read
def training_csv(request: HttpRequest, name: str, training: int) -> HttpResponse:
    run = find_training(own_view(request, name).submission, training)
    return csv_response(f"{name}-training-{run.pk}.csv", exports.epoch_rows(run))


@member_read
def training_json(request: HttpRequest, name: str, training: int) -> JsonResponse:
    view = own_view(request, name)
    run = find_training(view.submission, training)
    return _shown_json("", exports.training_as_dict(run, view.system))


@member_read
def attacker(request: HttpRequest, name: str, training: int, seed: int) -> HttpResponse:
    """Return what one seed learnt, as a zip; for the organizers of the system."""
    run = find_training(organized_view(request, name).submission, training)
    archive = exports.attacker_archive(run, seed)
    response = FileResponse(archive, as_attachment=True, filename=f"{name}-attacker-{run.pk}-seed-{seed}.zip")
    return cast("HttpResponse", response)
