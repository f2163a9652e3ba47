"""What the pages of trained attackers show: the trainings of a system, one with its live curves, and its report.

They belong to the team of a system and the organizers of its edition; only the latter start trainings and fetch what
was learnt, for who has the attacker can use it on other speech.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.urls import reverse

from evaluation.app.attacker_training.selectors import (
    TrainingReport,
    count_tested_speakers,
    find_training,
    list_epochs,
    list_training_sets,
    make_report,
    read_recipe_of_run,
    warn_of_tested,
)
from evaluation.app.attacker_training.services import ANY_DEVICE
from evaluation.app.attacks.stored_attackers import (
    describe_scoring,
    list_scorings,
    list_seeds,
    name_attacker,
    speech_of_training,
)
from evaluation.app.models import EvaluationRun, MetricValue, TrainingEpoch
from evaluation.app.runs.kinds import TRAINING
from evaluation.app.runs.selectors import list_runs
from evaluation.attackers.training.recipe import VARIANTS, TrainingRecipe, target_weights
from evaluation.attackers.training.report import Spread, spread
from evaluation.formats.results import Speech
from evaluation.objective_results.values import AVERAGE
from portal.core.labels import decimals, duration
from portal.jobs.models import JobState
from portal.jobs.rules import can_cancel, can_run_again
from portal.jobs.selectors import with_estimates
from portal.systems.attacker_training.charts import Chart, Level, Series, draw_chart
from portal.systems.attacker_training.tables import (
    PERCENT_DIGITS,
    percent,
    report_table,
    seeds_table,
    spread_text,
    trainings_table,
)
from portal.systems.selectors import View

WHERE = {"cpu": "processors", "cuda": "graphics card", ANY_DEVICE: "graphics card, or processors where there is none"}
LEGEND = {"source": "speakers (source)", "target": "targets"}


# All trainings of a system -------------------------------------------------------------------------


def list_page(view: View) -> dict[str, Any]:
    runs = list_runs(view.submission, TRAINING.kind)
    epochs = list_epochs(runs)
    reports = {run.pk: make_report(epochs[run.pk]) for run in runs}
    return view.context | {
        "trainings": trainings_table(view, runs, reports) if runs else None,
        "sweep": sweep_chart(runs, reports),
        "material": list_training_sets(view.submission),
    }


def sweep_chart(runs: Iterable[EvaluationRun], reports: Mapping[int, TrainingReport]) -> Chart | None:
    """Return the final VER_S against the epochs without a reversed gradient, as figure 4 of the paper.

    Of the trainings that differ in E alone; None where there are not two values of E.
    """
    found: dict[tuple[str, str, int], dict[int, list[float]]] = {}
    for run in runs:
        error = reports[run.pk].spread("source_error")
        recipe = read_recipe_of_run(run)
        if error is None or recipe.target_head == "none":
            continue
        is_baseline = recipe.largest_weight == 0
        known = "measured" if is_baseline else run.parameters["variant"]
        point = recipe.epochs if is_baseline else recipe.zero_epochs
        found.setdefault((run.recipe, known, recipe.epochs), {}).setdefault(point, []).append(100 * error.mean)
    series: list[Series] = []
    for (preset, variant, epochs), by_epoch in found.items():
        if variant == "measured":
            continue
        points = by_epoch | found.get((preset, "measured", epochs), {})
        if len(points) > 1:
            line = [(float(e), statistics.fmean(values)) for e, values in sorted(points.items())]
            kind = "source" if not series else "target"
            series.append(Series(f"{preset}, {VARIANTS[variant].title}", kind, line))
    return draw_chart(
        series,
        name="sweep",
        title="Final VER_S by the epochs without a reversed gradient",
        caption="Points: mean over the seeds of a training. Right end: baseline.",
        x_label="Epochs before the gradient is reversed, E",
        y_label="VER_S, %",
    )


# One training --------------------------------------------------------------------------------------


def training_page(view: View, training: int) -> dict[str, Any]:
    run = find_training(view.submission, training)
    recipe = read_recipe_of_run(run)
    live = live_part(view, run, recipe)
    report: TrainingReport = live["report"]
    job = run.job
    return {
        **view.context,
        **live,
        "can_cancel": view.is_organizer and job is not None and can_cancel(job),
        "can_run_again": view.is_organizer and job is not None and can_run_again(job),
        "compares_by_plda": recipe.back_end == "plda",
        "is_semi_informed": speech_of_training(run.parameters) is Speech.ANONYMISED,
        "settings": _settings(run, recipe),
        "results": report_table(run, report, report_cells(report, _error_rates(run, report))),
        "seeds": seeds_table(report),
        "warnings": _warnings(report, count_tested_speakers(run)),
        "ended": job is not None and job.has_ended,
    }


def live_part(view: View, run: EvaluationRun, recipe: TrainingRecipe | None = None) -> dict[str, Any]:
    """Return what is renewed while a training runs: how far it is, and its curves."""
    recipe = recipe or read_recipe_of_run(run)
    epochs = list_epochs([run])[run.pk]
    if run.job is not None:
        with_estimates([run.job])
    took = [epoch.seconds for found in epochs.values() for epoch in found]
    return {
        "run": run,
        "job": run.job,
        "variant": VARIANTS[run.parameters["variant"]],
        "charts": make_charts(epochs, recipe),
        "report": make_report(epochs),
        "is_active": run.job is not None and not run.job.has_ended,
        "live_url": f"{reverse('systems:training-live', args=[view.system.name, run.pk])}{view.query}",
        "done": sum(len(found) for found in epochs.values()),
        "total": recipe.epochs * len(list_seeds(run)),
        "unit": "epoch",
        "took": duration(statistics.fmean(took)) if took else "",
    }


def make_charts(by_seed: Mapping[int, Sequence[TrainingEpoch]], recipe: TrainingRecipe) -> list[Chart]:
    """Return the curves of a training: validation errors (figure 3 of the paper), losses, learning rate, weight."""
    extent = (1.0, float(max(2, recipe.epochs)))
    several = len(by_seed) > 1

    def lines(*kinds: tuple[str, str, str, float]) -> list[Series]:
        return [
            Series(f"{label}, seed {seed}" if several else label, kind, _points(epochs, name, factor))
            for name, label, kind, factor in kinds
            for seed, epochs in by_seed.items()
        ]

    errors = lines(("source_error", "VER_S", "source", 100.0), ("target_error", "VER_T", "target", 100.0))
    weights = target_weights(recipe)
    charts = [
        draw_chart(
            errors,
            name="errors",
            title="Validation errors",
            x_label="Epoch",
            y_label="Error, %",
            legend=LEGEND,
            caption="Share of held-out segments that are named wrongly; dotted lines: what a guess would reach.",
            x_extent=extent,
            y_extent=(0.0, 100.0),
            levels=_chances(by_seed),
        ),
        draw_chart(
            lines(("source_loss", "Speakers", "source", 1.0), ("target_loss", "Targets", "target", 1.0)),
            name="losses",
            title="Losses",
            x_label="Epoch",
            y_label="Loss",
            legend=LEGEND,
            x_extent=extent,
            digits=3,
            caption="Mean over the epoch on what is learnt, not on what is held out.",
        ),
        draw_chart(
            lines(("learning_rate", "Learning rate", "plain", 1000.0)),
            name="rate",
            title="Learning rate",
            caption="At the end of the epoch, in thousandths.",
            x_label="Epoch",
            y_label="Learning rate × 1000",
            x_extent=extent,
            digits=4,
        ),
        draw_chart(
            [Series("w_T", "target", [(float(at), one) for at, one in enumerate(weights, 1)])] if any(weights) else [],
            name="weight",
            title="Weight of the reversed gradient",
            x_label="Epoch",
            y_label="w_T",
            x_extent=extent,
            caption="As the recipe plans it, constant within an epoch.",
            digits=3,
        ),
    ]
    return [chart for chart in charts if chart is not None]


def _points(epochs: Sequence[TrainingEpoch], name: str, factor: float) -> list[tuple[float, float]]:
    values = ((epoch.epoch, epoch.values.get(name)) for epoch in epochs)
    return [(float(number), factor * value) for number, value in values if value is not None]


def _chances(by_seed: Mapping[int, Sequence[TrainingEpoch]]) -> list[Level]:
    values: dict[str, Any] = next((epochs[-1].values for epochs in by_seed.values() if epochs), {})
    names = (("source_chance", "speakers by chance:", "source"), ("target_chance", "targets by chance:", "target"))
    return [
        Level(f"{label} {decimals(100 * values[name], PERCENT_DIGITS)} %", kind, 100 * values[name])
        for name, label, kind in names
        if values.get(name) is not None
    ]


# The report ----------------------------------------------------------------------------------------


def report_cells(report: TrainingReport, error_rates: Mapping[str, Spread]) -> list[tuple[str, str, str]]:
    """Return the row of the report: error rates of the attack by trial set, then what the recogniser knows.

    Each is a label, mean and deviation over the seeds, per cent, and what a guess would reach.
    """
    first = report.first
    if first is None:
        return []
    cells = [(f"EER, {name}", spread_text(found), "50.0") for name, found in error_rates.items()]
    known = [("VER_S", "source_error", first.source_chance), ("VER_T", "target_error", first.target_chance)]
    known.append(("Fresh probe of targets", "target_probe", first.target_chance))
    return cells + [
        (label, spread_text(report.spread(name)), "" if chance is None else percent(chance))
        for label, name, chance in known
        if getattr(first, name) is not None
    ]


def _error_rates(run: EvaluationRun, report: TrainingReport) -> dict[str, Spread]:
    """Return the EERs of the attacks with these attackers, shares, over the seeds of each trial set."""
    names = {scoring: describe_scoring(run, scoring) for scoring in list_scorings(run)}
    engines = {name_attacker(run, one.seed, scoring): names[scoring] for one in report.seeds for scoring in names}
    values = MetricValue.objects.filter(
        run__submission=run.submission_id,
        run__kind=EvaluationRun.Kind.ATTACK,
        run__engine__in=engines,
        run__job__state=JobState.SUCCEEDED,
        metric="eer",
        estimator="kaldi",
    )
    newest: dict[tuple[str, str, str, str], dict[str, float]] = {}
    columns = ("data_set", "gender", "attack_model", "run__engine", "value")
    for name, gender, attack, engine, value in values.order_by("run").values_list(*columns):
        newest.setdefault((name, gender, attack, engines[engine]), {})[engine] = value / 100
    if any(name.startswith(AVERAGE) for name, *_ in newest):
        newest = {key: one for key, one in newest.items() if key[0].startswith(AVERAGE)}
    genders, attacks = (
        {name: {key[place] for key in newest if key[0] == name} for name, *_ in newest} for place in (1, 2)
    )
    found = {}
    for (name, gender, attack, scoring), by_engine in sorted(newest.items()):
        one = spread(list(by_engine.values()))
        if one is not None:
            said = [name if not name.startswith(AVERAGE) else f"average of {name.removeprefix(AVERAGE)}"]
            said += [MetricValue.Gender(gender).label] if len(genders[name]) > 1 else []
            said += [attack] if len(attacks[name]) > 1 else []
            said += [scoring] if len(names) > 1 else []
            found[", ".join(said)] = one
    return found


def _warnings(report: TrainingReport, tested: int) -> list[tuple[str, str]]:
    """Return what a reader must know before they believe the report: title and text."""
    found = [("The attacker was trained on speakers that it has to find", warn_of_tested(tested))] if tested else []
    first = report.first
    if first is not None and report.is_anti_prediction:
        found.append(
            (
                "VER_T is above chance: that is anti-prediction, not removal",
                f"A guess errs in {percent(first.target_chance)} % of all cases. A classifier that errs more often "
                "knows the target and names another one, so the vectors still hold it. Only the fresh probe tells "
                "whether target information is gone.",
            )
        )
    if report.probe_finds_more:
        found.append(
            (
                "A fresh probe finds more targets than VER_T suggests",
                f"Trained afterwards on the finished vectors it errs in {spread_text(report.spread('target_probe'))} % "
                f"of all cases, the classifier that the recogniser was trained against in "
                f"{spread_text(report.spread('target_error'))} %. The recogniser misleads that one classifier.",
            )
        )
    return found


def _comparison(recipe: TrainingRecipe) -> str:
    if recipe.back_end == "cosine":
        return "cosine"
    return f"LDA to at most {recipe.lda_dimensions} dimensions, length normalisation, PLDA"


def _settings(run: EvaluationRun, recipe: TrainingRecipe) -> list[tuple[str, str]]:
    facts = [
        ("Training data", f"{', '.join(run.parameters['data_sets'])}, {speech_of_training(run.parameters)} speech"),
        ("Recipe", f"{run.recipe}, version {run.recipe_version}"),
        ("Recogniser", f"{recipe.network_title}, {recipe.width} channels, vectors of {recipe.embedding} numbers"),
        ("Comparison", _comparison(recipe)),
        ("Learning", f"{recipe.epochs} epochs, {recipe.batch} pieces of {recipe.crop_s:g} s a step"),
        ("Target classifier", VARIANTS[run.parameters["variant"]].title),
        ("Seeds", ", ".join(map(str, list_seeds(run)))),
        ("Where", WHERE[run.parameters["device"]]),
        ("Code", run.code_version),
    ]
    if recipe.largest_weight:
        text = f"reversed from epoch {recipe.zero_epochs + 1} on, weight up to {recipe.largest_weight:g}"
        facts.insert(6, ("Gradient of the targets", text))
    return facts
