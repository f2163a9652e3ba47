"""``vp metrics``: every metric with its unit and definition, every edition, every estimator."""

from __future__ import annotations

from dataclasses import asdict

from common.parameters import AsJson
from common.terminal import NONE, print_json, print_paragraph, print_table, print_text
from evaluation.metrics.catalogue import ALL_METRICS, find_metric
from evaluation.protocols.recipes import Recipe, load_recipe, shipped_editions
from speech.pitch.estimators import ESTIMATORS as F0_ESTIMATORS

# of what, name, what it is
ESTIMATORS = (
    ("EER", "kaldi", "first crossing, k of all targets; ranks 2020 and 2022"),
    ("EER", "rocch", "convex hull of the ROC, at most 50 %"),
    ("EER", "speechbrain", "mean of the closest two rates; ranks 2024 and 2026"),
    *(("F0", estimator.name, estimator.title) for estimator in F0_ESTIMATORS.values()),
    ("pitch correlation", "official", "all frames, zeros included, after rotation by the best lag"),
    ("pitch correlation", "voiced", "frames voiced in both, at the same lag, as the papers say"),
    ("pitch correlation", "realigned", "frames voiced in both, after dynamic time warping"),
    ("G_VD, De-Identification", "official", "pair scores calibrated by Laplace PAV, as the script does"),
    ("G_VD, De-Identification", "plan", "equations 1 to 3 of the plan, without calibration"),
    ("WER", "tglarge", "rescored by the large language model; counts in 2020 and 2022"),
    ("WER", "tgsmall", "first pass with the small language model"),
    ("interval", "expanded", "quantiles of resampled speakers, widened for few speakers (default)"),
    ("interval", "logit", "Student's interval on the logit scale, of EERs and rank disclosures (their default)"),
    ("interval", "percentile", "the same quantiles for any number of speakers; also basic and bca"),
)


def list_metrics(as_json: AsJson = False) -> int:
    """List metrics with unit, direction and definition, editions and what they rank by, and estimators.

    vp metrics
    vp metrics --json
    """
    recipes = [load_recipe(edition) for edition in shipped_editions()]
    if as_json:
        print_json(
            {
                "metrics": [asdict(metric) for metric in ALL_METRICS.values()],
                "editions": [_edition(recipe) for recipe in recipes],
                "estimators": [dict(zip(("of", "name", "definition"), row, strict=True)) for row in ESTIMATORS],
            }
        )
        return 0
    print_text("Metrics")
    for metric in ALL_METRICS.values():
        unit = f", {metric.unit}" if metric.unit else ""
        better = {"higher": "higher is better", "lower": "lower is better", "near zero": "best near zero"}
        print_text(f"\n  {metric.key}  {metric.label}{unit}; {better.get(metric.direction, 'neither way is better')}")
        print_paragraph(metric.definition, indent="    ")
    print_text("\nEditions\n")

    def ranked_by(recipe: Recipe) -> str:
        return ", ".join(find_metric(rule.key, rule.estimator).label for rule in recipe.metrics if rule.primary)

    rows = [
        [recipe.edition, name, ranked_by(recipe) if track.ranking else "no ranking", _minima(recipe, name)]
        for recipe in recipes
        for name, track in recipe.tracks.items()
    ]
    print_table(["edition", "track", "metrics that decide the rank", "minimum EERs, %"], rows, indent="  ")
    print_text("\nEstimators\n")
    print_table(["of", "name", "definition"], ESTIMATORS, indent="  ")
    return 0


def _minima(recipe: Recipe, track: str) -> str:
    ranking = recipe.tracks[track].ranking
    if ranking is None:
        return NONE
    if not ranking.minimum_eers:
        return "set by the organizer"
    doubt = " (not confirmed)" if recipe.is_uncertain(f"tracks.{track}.ranking.minimum_eers") else ""
    return ", ".join(f"{minimum:g}" for minimum in ranking.minimum_eers) + doubt


def _edition(recipe: Recipe) -> dict[str, object]:
    tracks = {
        name: {
            "languages": list(track.languages),
            "averages": [
                {name: getattr(average, name) for name in ("metric", "estimator", "label")}
                | {"weights": {split: dict(row) for split, row in average.weights.items()}}
                for average in track.averages
            ],
            "minimum_eers": list(track.ranking.minimum_eers) if track.ranking else [],
        }
        for name, track in recipe.tracks.items()
    }
    return {
        "edition": recipe.edition,
        "title": recipe.title,
        "metrics": [asdict(rule) for rule in recipe.metrics],
        "data_sets": list(recipe.data_sets),
        "tracks": tracks,
        "uncertain": list(recipe.uncertain),
    }
