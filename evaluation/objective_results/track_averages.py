"""Which averages a track has, which numbers enter each, and averages by other weights of numbers at hand.

Conventions: averages are weighted sums of unrounded numbers; beside the EER that ranks stand, by the same weights, the
ROCCH-EER, what lies beyond the EER, and the predicted naturalness.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from common.errors import InputError
from evaluation.formats.results import Gender, NumberIdentity, Speech
from evaluation.metrics.averages import weighted_average
from evaluation.metrics.bootstrap import Replicates, weighted_sum
from evaluation.metrics.detection import Estimator
from evaluation.objective_results import values
from evaluation.protocols.recipes import Average, Recipe, Track

PHONES = "per"  # of recognisers that are trained again
# What such a number is called, by the speech that the recogniser was trained on and the speech that it heard.
ROW_OF = {
    (Speech.ORIGINAL, Speech.ORIGINAL): "ceiling",
    (Speech.ANONYMISED, Speech.ANONYMISED): "retrained",
    (Speech.ORIGINAL, Speech.ANONYMISED): "frozen",
}
ESTIMATORS: tuple[Estimator, ...] = ("kaldi", "speechbrain")


def estimator_of(recipe: Recipe | None) -> Estimator:
    """Return the equal error rate that a recipe averages by; the usual one without a recipe."""
    averages = (average for track in recipe.tracks.values() for average in track.averages) if recipe else ()
    named = {average.estimator for average in averages if average.metric == "eer"}
    return next((one for one in ESTIMATORS if one in named), "kaldi")


def list_averages(track: Track) -> Iterator[Average]:
    """Yield every average of a track, those that are made beside the EER among them."""
    for average in track.averages:
        yield average
        if average.metric == "eer":
            if average.estimator != "rocch":
                yield replace(average, estimator="rocch")
            for metric in values.AVERAGED_BEYOND:
                yield replace(average, metric=metric, estimator="")
            yield replace(average, metric=values.PREDICTED[0], estimator=values.PREDICTED[1])


def list_identities(recipe: Recipe, average: Average, split: str) -> list[NumberIdentity]:
    """Return an average of a split for each attack model or speech."""
    if average.metric in values.DETECTION:
        tests: list[dict[str, object]] = [{"attack_model": one} for one in values.averaged_attacks(recipe)]
    else:
        tests = [{"speech": one} for one in Speech]
    return list(dict.fromkeys(values.average_identity(recipe, average, split, **test) for test in tests))


def member_of(recipe: Recipe, average: NumberIdentity, data_set: str) -> NumberIdentity:
    """Return the number of a data set that enters an average."""
    one = recipe.data_sets[data_set]
    return replace(average, data_set=data_set, gender=Gender(one.gender) if one.role == "trial" else Gender.ALL)


def weights_by_average(track: Track) -> dict[tuple[str, str, str], Mapping[str, float]]:
    """Return the weights of each average, by metric, estimator and split; the first one counts."""
    found: dict[tuple[str, str, str], Mapping[str, float]] = {}
    for one in list_averages(track):
        for split, weights in one.weights.items():
            found.setdefault((one.metric, one.estimator, split), weights)
    return found


def correct_averages(
    numbers: Mapping[NumberIdentity, values.Number], recipe: Recipe, track: Track
) -> dict[NumberIdentity, values.Number]:
    """Return the numbers with averages as a recipe weighs them, where they were made by a former one.

    An average that both weigh alike stays, with its interval; so does one of which a data set has no number.
    """
    found, known = dict(numbers), weights_by_average(track)
    for identity, number in numbers.items():
        split = identity.data_set.removeprefix(values.AVERAGE)
        weights = known.get((identity.metric, identity.estimator, split)) if number.is_average else None
        other = _average(numbers, recipe, identity, weights) if weights else None
        if other is not None and not math.isclose(other.value, number.value, abs_tol=1e-9):
            found[identity] = replace(number, value=other.value, low=None, high=None)
    return found


def _average(
    numbers: Mapping[NumberIdentity, values.Number],
    recipe: Recipe,
    identity: NumberIdentity,
    weights: Mapping[str, float],
) -> values.Number | None:
    members = [numbers.get(member_of(recipe, identity, name)) for name in weights]
    present = [one for one in members if one is not None]
    try:
        value = weighted_average([(one.identity.data_set, one.value) for one in present], weights).value
    except InputError:
        return None
    basis = values.Basis.VALUES if all(one.is_recomputed for one in present) else values.Basis.REPORTED
    return values.Number(identity, value, basis, len(present))


def add_average(
    numbers: dict[NumberIdentity, values.Number],
    replicates: Mapping[NumberIdentity, Replicates],
    name: str,
    weights: Mapping[str, float],
    whole: NumberIdentity,
) -> None:
    """Add the average of an error rate to the numbers, with an interval where each of its data sets has resamples.

    Nothing is added where a data set lacks its number: the table of the numbers shows that.

    Args:
        name: of the average, in place of a data set.
        weights: by data set.
        whole: identity of the numbers, but for the data set.
    """
    members = [numbers.get(replace(whole, data_set=one)) for one in weights]
    present = [(one.identity.data_set, one.value) for one in members if one is not None]
    try:
        value = weighted_average(present, weights).value
    except InputError:
        return
    parts = [(100 * weight, replicates.get(replace(whole, data_set=one))) for one, weight in weights.items()]
    known = [(weight, resamples) for weight, resamples in parts if resamples is not None]
    interval = weighted_sum(known).find_interval() if len(known) == len(parts) else None
    low, high = (interval.lower, interval.upper) if interval else (None, None)
    identity = replace(whole, data_set=name)
    numbers[identity] = values.Number(identity, value, values.Basis.VALUES, len(present), low=low, high=high)


def name_row(number: values.Number) -> str:
    """Return which row of a retrained recogniser a number belongs to; empty for others."""
    identity = number.identity
    if identity.metric != PHONES or identity.training is None:
        return ""
    return ROW_OF.get((identity.training, identity.speech), "")


def average_rows(numbers: Iterable[values.Number], track: Track, split: str) -> dict[str, values.Number]:
    """Return the average of each row of a retrained recogniser, by the weights of the word error rate.

    An average that was stored by other weights has no interval; there is none where a data set was not heard.
    """
    rows: dict[str, dict[str, values.Number]] = {}
    for number in numbers:
        if row := name_row(number):
            rows.setdefault(row, {})[number.identity.data_set] = number
    weights = next((one.weights[split] for one in track.averages if one.metric == "wer" and split in one.weights), {})
    found = {}
    for row, by_set in rows.items():
        stored = by_set.get(f"{values.AVERAGE}{split}")
        if stored is None or not weights.keys() <= by_set.keys():
            continue
        if weights:
            value = weighted_average([(name, by_set[name].value) for name in weights], weights).value
            if not math.isclose(value, stored.value):
                stored = replace(stored, value=value, low=None, high=None)
        found[row] = stored
    return found
