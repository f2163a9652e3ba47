"""What the pages of trainings of networks show: all of them, and one with its curves, its card and its files.

What a network learnt tells of the people whom it heard, so that only organizers who may see the corpus see a training.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html

from anonymization.app.models import NetworkSeed, NetworkTraining
from anonymization.app.network_training.selectors import (
    find_change,
    list_jobs,
    list_warnings,
    managed_trainings_for,
    may_see_decoder,
    read_recipe,
    sum_up_state,
    trainings_for,
)
from anonymization.app.networks import list_readers
from anonymization.methods.content_decoder.retrained import DECODER
from anonymization.network_training.recipe import read_recipes
from common.errors import InputError
from common.tables import Cell, Column, Table, number_columns, plain_table
from portal.challenges.models import Role
from portal.challenges.selectors import corpora_for
from portal.core.labels import MISSING, decimals, duration, moment_cell
from portal.corpora.selectors import summaries
from portal.jobs.models import JobState
from portal.jobs.rules import can_run_again, is_ending
from portal.jobs.selectors import with_estimates
from portal.systems.attacker_training.charts import Chart, Series, draw_chart

PAGE_SIZE = 25
LOSS_DIGITS = 3
# Losses and measures of the cards, as people read them.
LOSSES = {
    "spectrum": "Difference of spectra",
    "spectra": "Difference of spectra",
    "codes": "Distance of codes",
    "loss": "Loss",
    "phone_error_rate": "Phone errors, utterances held out",
    "f0": "Error of F0",
    "voicing": "Doubt of voicing",
    "adversarial": "Judgement of the discriminators",
    "features": "Difference to the discriminators",
    "discriminators": "Loss of the discriminators",
}
Shown = Callable[[float], str]
HELD_OUT: Mapping[str, tuple[str, Shown]] = {
    "utterances": ("Utterances of speakers held out", "{:,.0f}".format),
    "pieces": ("Pieces of speakers held out", "{:,.0f}".format),
    "rmse_semitones": ("F0 off by, semitones", "{:.2f}".format),
    "null_rmse_semitones": ("Mean F0 off by, semitones", "{:.2f}".format),
    "correlation": ("Correlation of F0", "{:.2f}".format),
    "voicing_error": ("Voicing errors, % of frames", lambda share: f"{100 * share:.1f}"),
    "phone_error_rate": ("Phone errors of utterances held out, %", lambda share: f"{100 * share:.1f}"),
    "cosine": ("Cosine to their vectors", "{:.3f}".format),
    "null_cosine": ("Cosine of the mean voice", "{:.3f}".format),
}


# All trainings -------------------------------------------------------------------------------------


def list_page(request: HttpRequest) -> dict[str, Any]:
    page = Paginator(trainings_for(request.user), PAGE_SIZE).get_page(request.GET.get("page"))
    trainings = list(page.object_list)
    corpora = corpora_for(request.user).filter(archived_at=None, data_sets__role=Role.TRAINING).distinct()
    return {
        "page": page,
        "listing": trainings_table(trainings) if trainings else None,
        "corpora": summaries(corpora.order_by("name")),
    }


def trainings_table(trainings: Iterable[NetworkTraining]) -> Table:
    columns = [Column("training", "Training"), Column("speech", "Speech", kind="text"), Column("seeds", "Seeds")]
    columns += [Column("state", "State"), Column("reached", "Reached"), Column("by", "Started by"), Column("at", "On")]
    return plain_table("Trainings of networks", columns, map(_training, trainings), is_caption_hidden=True)


def _training(training: NetworkTraining) -> list[Cell | str]:
    seeds, state = list(training.seeds.all()), sum_up_state(list_jobs(training))
    ended = sum(bool(one.card) for one in seeds)
    is_whole = ended == len(seeds)
    return [
        Cell(f"Training {training.pk}", link=training.get_absolute_url(), aside=training.recipe),
        Cell(str(training.corpus), aside=", ".join(training.data_sets)),
        f"{len(seeds)}" if is_whole else f"{ended} of {len(seeds)}",
        Cell(state.label, badge=state),
        _reached([one for one in seeds if one.card]),
        str(training.created_by or MISSING),
        moment_cell(training.created_at),
    ]


def _reached(seeds: Sequence[NetworkSeed]) -> Cell:
    """Return the number that tells most of a training, mean over its seeds: on speakers held out, else the first
    loss."""
    cards = [one.card for one in seeds]
    for name in ("rmse_semitones", "cosine", "phone_error_rate"):
        found = [card["held_out"][name] for card in cards if card.get("held_out", {}).get(name) is not None]
        if found:
            label, shown = HELD_OUT[name]
            return Cell(shown(statistics.fmean(found)), aside=label)
    if not (seeds and seeds[0].losses):
        return Cell(MISSING)
    name = seeds[0].losses[0][1]  # a database may keep the keys of a card in another order
    return Cell(decimals(statistics.fmean(card["losses"][name] for card in cards), LOSS_DIGITS), aside=_loss(name))


def _loss(name: str) -> str:
    return LOSSES.get(name, name.replace("_", " ").capitalize())


# One training --------------------------------------------------------------------------------------


def training_page(user: Any, training: NetworkTraining) -> dict[str, Any]:
    live = live_part(training)
    jobs, seeds = list_jobs(training), live["seeds"]
    active = live["is_active"]
    has_stopped = not active and any(map(can_run_again, jobs))
    change = find_change(training) if has_stopped else ""
    return {
        **live,
        "title": read_recipes()[training.recipe].title if training.recipe in read_recipes() else training.recipe,
        "can_cancel": active and not is_ending(jobs),
        "can_continue": has_stopped and not change,
        "change": change,
        "settings": _settings(user, training),
        "warnings": list_warnings(training),
        "cards": cards_table([one for one in seeds if one.card]),
        "is_judged": any(
            name in one.card.get("held_out", {}) for one in seeds for name in ("rmse_semitones", "cosine")
        ),
        **_list_readers(user, training, [one for one in seeds if one.card]),
        "ended_seeds": [one for one in seeds if one.card],
        "may_delete": managed_trainings_for(user).filter(pk=training.pk).exists(),
    }


def _list_readers(user: Any, training: NetworkTraining, ended: Sequence[NetworkSeed]) -> dict[str, Any]:
    """Return the methods that can run with networks of these seeds of a training, which fit the same decoder. Of a
    decoder also those that need a network for it besides, and the trainings of such."""
    found, refused = list_readers(ended[0]) if ended and may_see_decoder(user, training) else ({}, {})
    return {
        "readers": [name for name in found if name not in refused],
        "needing_another": list(refused) if training.recipe == DECODER else [],
        "for_it": trainings_for(user).filter(decoder__training=training).order_by("pk"),
    }


def live_part(training: NetworkTraining) -> dict[str, Any]:
    """Return what is renewed while a training runs: how far it is, and its curves."""
    jobs, seeds = with_estimates(list_jobs(training)), list(training.seeds.all())
    shown = next((job for job in jobs if job.state != JobState.SUCCEEDED), jobs[-1] if jobs else None)
    return {
        "training": training,
        "seeds": seeds,
        "job": shown,
        "job_seed": next((one.seed for one in seeds if shown and one.job_id == shown.pk), None),
        "live_url": reverse("network-trainings:live", args=[training.pk]),
        "done": sum(bool(one.card) for one in seeds),
        "total": len(seeds),
        "unit": "seed",
        "is_active": any(not job.has_ended for job in jobs),
        "charts": make_charts(seeds),
    }


def make_charts(seeds: Sequence[NetworkSeed]) -> list[Chart]:
    """Return a chart for each loss, with a line for each seed."""
    told = [one for one in seeds if len(one.losses) > 1]
    names = told[0].losses[0][1:] if told else []
    several = len(told) > 1
    charts = (
        draw_chart(
            [
                Series(
                    f"Seed {one.seed}",
                    "plain",
                    [(float(row[0]), float(row[place])) for row in one.losses[1:] if row[place] is not None],
                )
                for one in told
            ],
            name=name,
            title=_loss(name),
            caption=f"Mean since the state before, on what is learnt{'; a line for each seed' if several else ''}.",
            x_label=told[0].losses[0][0].capitalize(),
            y_label="Loss",
            digits=LOSS_DIGITS,
        )
        for place, name in enumerate(names, start=1)
    )
    return [chart for chart in charts if chart is not None]


def cards_table(seeds: Sequence[NetworkSeed]) -> Table | None:
    """Return the cards of the seeds that have ended, side by side; None before one has."""
    if not seeds:
        return None
    cards = [one.card for one in seeds]
    rows: list[tuple[str, list[Cell | str]]] = [
        ("Utterances", [f"{card['data']['utterances']:,}" for card in cards]),
        ("Speakers", [f"{card['data']['speakers']:,}" for card in cards]),
        ("Speech", [duration(card["data"]["seconds"]) for card in cards]),
        ("Steps", [f"{steps:,}" if (steps := card["recipe"].get("steps")) else MISSING for card in cards]),
    ]
    heads = seeds[0].losses[0] if seeds[0].losses else []
    for name in sorted(_names(cards, "losses"), key=lambda one: heads.index(one) if one in heads else len(heads)):
        values = [decimals(card["losses"][name], LOSS_DIGITS) for card in cards]
        rows.append((f"{_loss(name)}, at the end", [*values]))
    known = list(HELD_OUT)
    for name in sorted(_names(cards, "held_out"), key=lambda one: known.index(one) if one in known else len(known)):
        label, shown = HELD_OUT.get(name, (name.replace("_", " ").capitalize(), str))
        found = [card["held_out"].get(name) for card in cards]
        rows.append((label, [MISSING if value is None else shown(value) for value in found]))
    rows += [
        ("Time of training", [duration(card["training_seconds"]) for card in cards]),
        ("Device", [str(card.get("device", "cpu")) for card in cards]),
        ("Threads", [str(card.get("threads", MISSING)) for card in cards]),
        ("torch", [str(card.get("torch", MISSING)) for card in cards]),
        ("Encoder of speakers", [str(card.get("speaker_encoder", MISSING)) for card in cards]),
    ]
    if any("decoder_sha256" in card for card in cards):
        rows.append(("SHA-256 of the decoder that it reads", [_hash(card.get("decoder_sha256", "")) for card in cards]))
    for name in _names(cards, "sha256"):
        rows.append((f"SHA-256 of {name}", [_hash(card["sha256"][name]) for card in cards]))
    columns = [Column("what", "Card"), *number_columns(*(f"Seed {one.seed}" for one in seeds))]
    return plain_table(
        "Cards of the seeds", columns, ([name, *cells] for name, cells in rows), is_caption_hidden=True, styles="pin"
    )


def _names(cards: Sequence[Mapping[str, Any]], part: str) -> list[str]:
    return list(dict.fromkeys(name for card in cards for name in card.get(part, {})))


def _hash(sha256: str) -> Cell:
    return Cell(f"{sha256[:12]}…", title=sha256) if sha256 else Cell(MISSING)


def _settings(user: Any, training: NetworkTraining) -> list[tuple[str, str]]:
    changes = ", ".join(f"{name}={value}" for name, value in training.changes.items())
    try:
        values = f"as the recipe has them, but {changes}" if read_recipe(training) and changes else ""
    except (KeyError, InputError):
        values = f"{changes}; this version of the portal has no such recipe" if changes else "of another version"
    decoder: list[tuple[str, str]] = []
    if own := training.decoder:
        address = own.training.get_absolute_url() if may_see_decoder(user, training) else ""
        decoder = [("Decoder", format_html('<a href="{}">{}</a>', address, own) if address else str(own))]
    return [
        ("Recipe", training.recipe),
        *decoder,
        ("Speech", f"{', '.join(training.data_sets)} of {training.corpus}"),
        ("Licence of the speech", training.licence or "not stated"),
        ("Seeds", ", ".join(str(one.seed) for one in training.seeds.all())),
        ("Values", values or "as the recipe has them"),
        ("Started", f"{training.created_at:%Y-%m-%d %H:%M} UTC by {training.created_by or 'nobody who is known'}"),
        ("Code", training.code_version),
    ]
