"""Objective measures beside what listeners said, utterance by utterance: joined, correlated, and where they disagree.

A system can be heard well and recognised badly, or the reverse; results of 2022 report correlations of utterances of
about 0.1 between ratings and the recogniser, so the two do not replace each other. To see why, listen to
the utterances on which they differ most.

Conventions: an utterance is one source utterance of one system, its rating the mean of its scores; 1 − WER is 1 minus
the recogniser's errors per word of the reference on this utterance, 1 for no error, negative with many insertions; ρF0
is the pitch correlation with the original. Correlations are over anonymised utterances of all systems together; their
intervals resample listeners and take the utterances as given, so they say nothing of other utterances.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from common.arrays import Flags, Floats, Ints, Texts
from common.tables import DataTable
from listening.analysis.models.intervals import draw_listeners, percentile_interval
from listening.analysis.reading.inputs import ORIGINAL, ObjectiveRows, Scale, Scored, Settings
from listening.analysis.scoring.resampled import weighted_pearson, weighted_spearman
from listening.analysis.tables import Row, make_table

SUBJECTIVE = ("naturalness", "intelligibility")
_CORRELATIONS = {"pearson": weighted_pearson, "spearman": weighted_spearman}
ONE_MINUS_WER, PITCH = "1 − WER", "ρF0"
HEARD_BADLY, HEARD_WELL = "heard-badly", "heard-well"
MOST_DISAGREEMENTS = 10  # of a kind, of one task and system
_DECIMALS = 10
_CELLS_AT_ONCE = 200_000  # resamples times utterances, so that a dozen such arrays stay in the processor's cache
_LEAST_UTTERANCES = 3  # two always lie on a line
_NO_LISTENER = "Both are computed, without listeners, so there is no interval."


class ObjectiveMeasures(NamedTuple):
    """Of one utterance of one system; NaN where not known."""

    errors: float
    words: float
    pitch_correlation: float

    @property
    def one_minus_wer(self) -> float:
        return 1 - self.errors / self.words if self.words > 0 else float("nan")


_UNKNOWN = ObjectiveMeasures(float("nan"), float("nan"), float("nan"))


@dataclass(frozen=True, eq=False)
class RatedUtterances:
    """Utterances that were rated, the original first, then by system and utterance.

    Attributes:
        system, utterance, speaker: shape (utterances,).
        sums, counts: by task, shape (listeners, utterances): scores that a listener gave it, and how many.
        measures: shape (utterances,) each, by name: means of `SUBJECTIVE`, `ONE_MINUS_WER`, `PITCH`; NaN unknown.
    """

    system: Texts
    utterance: Texts
    speaker: Texts
    sums: Mapping[str, Floats]
    counts: Mapping[str, Floats]
    measures: Mapping[str, Floats]

    @property
    def is_anonymised(self) -> Flags:
        return np.asarray(self.system != ORIGINAL)

    def ratings(self, task: str) -> Ints:
        """Return how often each was rated, shape (utterances,)."""
        return np.asarray(self.counts[task].sum(0), np.int64)


def make_objective_tables(scored: Scored, objective: ObjectiveRows | None, settings: Settings) -> list[DataTable]:
    """Return ``utterances``, ``correlations`` and ``disagreements``; of ratings alone without objective measures."""
    rated = join_utterances(scored, objective)
    return [
        make_table("utterances", _utterance_rows(rated)),
        make_table("correlations", _correlation_rows(rated, draw_listeners(len(scored.listeners), settings), settings)),
        make_table("disagreements", _disagreements(rated, scored.scale)),
    ]


def index_objective(objective: ObjectiveRows | None) -> dict[tuple[str, str], ObjectiveMeasures]:
    """Return what was computed, by system and utterance; each has one row, see `input_files.check_part`."""
    if objective is None:
        return {}
    names = zip(objective.system.tolist(), objective.utterance.tolist(), strict=True)
    numbers = (objective.errors.tolist(), objective.words.tolist(), objective.pitch_correlation.tolist())
    return dict(zip(names, map(ObjectiveMeasures, *numbers), strict=True))


def join_utterances(scored: Scored, objective: ObjectiveRows | None) -> RatedUtterances:
    """Return utterances rated in one of `SUBJECTIVE`, with everything that is known of them."""
    ratings = scored.ratings
    asked = np.isin(ratings.task, SUBJECTIVE) & (ratings.utterance != "")
    names = list(zip(ratings.system[asked].tolist(), ratings.utterance[asked].tolist(), strict=True))
    ordered = sorted(set(names), key=lambda one: (one[0] != ORIGINAL, one))
    place_of = {name: place for place, name in enumerate(ordered)}
    place = np.array([place_of[name] for name in names], np.int64)
    shape = len(scored.listeners), len(ordered)
    cell = scored.listener[asked] * len(ordered) + place
    sums: dict[str, Floats] = {}
    counts: dict[str, Floats] = {}
    for task in SUBJECTIVE:
        of_task = ratings.task[asked] == task
        score = scored.score[asked][of_task]
        for found, each in ((sums, score), (counts, np.ones(score.size))):
            found[task] = np.asarray(np.bincount(cell[of_task], each, shape[0] * shape[1]), np.float64).reshape(shape)
    known = index_objective(objective)
    computed = [known.get(name, _UNKNOWN) for name in ordered]
    measures = {task: _means(sums[task].sum(0), counts[task].sum(0)) for task in SUBJECTIVE}
    measures[ONE_MINUS_WER] = np.array([one.one_minus_wer for one in computed])
    measures[PITCH] = np.array([one.pitch_correlation for one in computed])
    return RatedUtterances(
        system=np.array([system for system, _ in ordered], np.str_),
        utterance=np.array([utterance for _, utterance in ordered], np.str_),
        speaker=_speakers(ratings.speaker[asked], place, len(ordered)),
        sums=sums,
        counts=counts,
        measures=measures,
    )


def _speakers(speaker: Texts, place: Ints, utterances: int) -> Texts:
    """Return the speaker of each utterance: the first name by the alphabet that is not empty."""
    found = [""] * utterances
    for name, at in sorted(zip(speaker.tolist(), place.tolist(), strict=True), reverse=True):
        found[at] = name or found[at]
    return np.array(found, np.str_)


def _utterance_rows(rated: RatedUtterances) -> Iterator[Row]:
    n, measures = np.maximum(*(rated.ratings(task) for task in SUBJECTIVE)), rated.measures
    for row in range(rated.system.size):
        named = {"system": rated.system[row], "utterance": rated.utterance[row], "speaker": rated.speaker[row]}
        scores = {task: measures[task][row] for task in SUBJECTIVE}
        computed = {"one_minus_wer": measures[ONE_MINUS_WER][row], "pitch_correlation": measures[PITCH][row]}
        yield {**named, "n": n[row], **scores, **computed}


def _correlation_rows(rated: RatedUtterances, draws: Floats | None, settings: Settings) -> Iterator[Row]:
    """Yield each two measures that some anonymised utterance has both of."""
    for first, second in combinations((*SUBJECTIVE, ONE_MINUS_WER, PITCH), 2):
        has_both = np.isfinite(rated.measures[first]) & np.isfinite(rated.measures[second]) & rated.is_anonymised
        utterances = int(has_both.sum())
        if not utterances:
            continue
        row: Row = {"first": first, "second": second, "utterances": utterances}
        tasks = [one for one in (first, second) if one in SUBJECTIVE]
        rated_by = [rated.counts[task][:, has_both].any(1) for task in tasks]
        listeners = int(np.any(rated_by, axis=0).sum()) if tasks else None
        yield row | {"listeners": listeners} | _correlated(rated, has_both, (first, second), draws, settings, listeners)


def _correlated(
    rated: RatedUtterances,
    chosen: Flags,
    names: tuple[str, str],
    draws: Floats | None,
    settings: Settings,
    listeners: int | None,
) -> Row:
    """Return both correlations of two measures over the chosen utterances, their intervals, and a note."""
    if chosen.sum() < _LEAST_UTTERANCES:
        return {"remark": f"Fewer than {_LEAST_UTTERANCES} utterances: no correlation."}
    first, second = (rated.measures[name][chosen][None, :] for name in names)
    once = np.ones_like(first)
    row: Row = {name: of(first, second, once)[0] for name, of in _CORRELATIONS.items()}
    if np.isnan(row["pearson"]):
        return row | {"remark": "One of the two is the same for all utterances: no correlation."}
    if listeners is None:
        return row | {"remark": _NO_LISTENER}
    if draws is None or listeners < settings.least_clusters:
        return row | {"remark": f"Fewer than {settings.least_clusters} listeners: no interval."}
    for name, resampled in _resampled(rated, chosen, names, draws).items():
        limits = percentile_interval(_centred(resampled, row[name]), settings.level)
        row[f"{name}_low"], row[f"{name}_high"] = limits
    return row


def _centred(resampled: Floats, value: float) -> Floats:
    """Move resampled correlations so that their mean is the correlation found, and keep them in [-1, 1].

    A resample has some ratings twice and others not at all, so its means are noisier and correlate less: with three
    ratings for each utterance by about 0.04 of 0.4 in simulated studies, as much as the resamples spread.
    """
    defined = resampled[np.isfinite(resampled)]
    return np.clip(defined - (defined.mean() if defined.size else 0) + value, -1, 1)


def _resampled(rated: RatedUtterances, chosen: Flags, names: tuple[str, str], draws: Floats) -> dict[str, Floats]:
    """Return both correlations in every resample of listeners, shape (resamples,) each.

    The mean of an utterance is that of the ratings drawn. An utterance counts by how many of its ratings were drawn
    compared with how many it has, so that one rated once counts as often as its listener is drawn: if it counted once
    or not at all, intervals would be too narrow. Utterances without a drawn rating do not occur.
    """
    found: dict[str, list[Floats]] = {name: [] for name in _CORRELATIONS}
    step = max(1, _CELLS_AT_ONCE // int(chosen.sum()))
    for part in (slice(start, start + step) for start in range(0, len(draws), step)):
        values, weights = {}, []
        for name in names:
            if name not in SUBJECTIVE:
                values[name] = rated.measures[name][None, chosen]
                continue
            counts = rated.counts[name][:, chosen]
            drawn = draws[part] @ counts
            values[name] = _means(draws[part] @ rated.sums[name][:, chosen], drawn)
            weights.append(drawn / counts.sum(0))
        weight = np.where(np.all([one > 0 for one in weights], axis=0), np.mean(weights, axis=0), 0.0)
        first, second = (values[name] for name in names)
        for name, of in _CORRELATIONS.items():
            found[name].append(of(first, second, weight))
    return {name: np.concatenate(parts) for name, parts in found.items()}


def _means(sums: Floats, counts: Floats) -> Floats:
    """Return means, rounded so that equal ones are tied in whatever order ratings were added; NaN of none."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.round(sums / counts, _DECIMALS))


def _disagreements(rated: RatedUtterances, scale: Scale) -> Iterator[Row]:
    """Yield, by task, kind and system, the utterances on which listeners and recogniser differ most, those first.

    Heard badly: every word recognised, the worst rated first. Heard well: with errors, ordered by how far the score,
    as a share of the scale, is above 1 − WER (not below 0). The order is that over all systems, so that the first rows
    of a task and kind are the largest disagreements of all; equal ones stand by system and utterance.
    """
    for task in SUBJECTIVE:
        ratings = rated.ratings(task)
        low, high = scale.get(task, (0.0, 1.0))
        share = (rated.measures[task] - low) / (high - low)
        recognised = rated.measures[ONE_MINUS_WER]
        above = np.round(share - np.maximum(recognised, 0), 9)
        for kind, chosen, first in ((HEARD_BADLY, recognised == 1, above), (HEARD_WELL, recognised < 1, -above)):
            found = np.flatnonzero(chosen & rated.is_anonymised & (ratings > 0))
            taken: dict[str, int] = {}
            for row in sorted(found.tolist(), key=lambda one, first=first: (first[one], one)):  # type: ignore[misc]
                system = str(rated.system[row])
                taken[system] = taken.get(system, 0) + 1
                if taken[system] <= MOST_DISAGREEMENTS:
                    named = {"system": system, "utterance": rated.utterance[row], "speaker": rated.speaker[row]}
                    score = {"score": rated.measures[task][row], "n": ratings[row], "one_minus_wer": recognised[row]}
                    yield {"kind": kind, "task": task, **named, **score}
