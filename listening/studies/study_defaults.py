"""What a new study begins with: systems, data sets and numbers from what its edition holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from listening.models import Study
from listening.studies import designs, services
from listening.studies.pools import sets_to_hear, submissions_to_hear
from portal.challenges.models import DataSet, Edition, Role, TrialList

Form = Study.Form
MOST_SYSTEMS = 20
ROOM = 1.5  # recordings of each role for each trial of a session


@dataclass(frozen=True)
class Preset:
    """A size to begin with; numbers by form as evaluators, trials of each and how many of them are original.

    Of several sizes the first one is taken for which there are enough recordings, or the last.
    """

    words: str
    sizes: dict[str, Sequence[tuple[int, int, int]]]
    extras: dict[str, int]


PRESETS = {
    "2022": Preset(
        words="as in 2022: 52 evaluators, 52 trials each, 26 of them original",
        sizes={
            Form.RATING: [(52, 52, 26)],
            Form.LINKABILITY: [(24, 3, 0)],
            Form.TRANSCRIPTION: [(24, 30, 10)],
        },
        extras={"practice_trials": 3, "gold_trials": 2, "bridge_trials": 0},
    ),
    "small": Preset(
        words="small: what the recordings allow for a first try, at most 12 evaluators with 24 trials each",
        sizes={
            Form.RATING: [
                (12, 24, 12),
                (8, 16, 8),
                (8, 12, 6),
                (6, 12, 6),
                (4, 12, 6),
                (4, 8, 4),
                (2, 8, 4),
                (2, 4, 2),
            ],
            Form.LINKABILITY: [(6, 2, 0), (4, 1, 0)],
            Form.TRANSCRIPTION: [(6, 12, 4), (4, 8, 2), (2, 4, 2)],
        },
        extras={"practice_trials": 2, "gold_trials": 2, "bridge_trials": 0},
    ),
}
BOARD_SAMPLES = {"2022": [12], "small": [12, 8, 6]}


def make_study(*, edition: Edition, by: Any, name: str, title: str, form: str, preset: str) -> Study:
    """A draft with every system that can be heard, the recordings of one subset, and the numbers of a preset.

    Raises:
        StudyProblems: the name is taken.
    """
    systems = list(submissions_to_hear(edition)[:MOST_SYSTEMS])
    data_sets = best_sets(edition)
    study = services.create_study(
        edition=edition,
        by=by,
        systems=systems,
        data_sets=data_sets,
        name=name,
        title=title,
        form=form,
        plays_at_most=2 if form == Form.TRANSCRIPTION else None,
        **_sizes(form, preset)[0],
    )
    for numbers in _sizes(form, preset):
        for field, value in numbers.items():
            setattr(study, field, value)
        if _has_room(study, data_sets) and not designs.plan_problems(study, systems=systems, data_sets=data_sets):
            break
    study.save()
    return study


def best_sets(edition: Edition) -> list[DataSet]:
    """An enrolment set and every trial set compared with it: of the test where there is one, else the largest."""
    heard = {one.pk: one for one in sets_to_hear(edition)}
    lists = TrialList.objects.filter(trial_set__in=heard, enrolment_set__in=heard)
    by_enrolment: dict[int, list[int]] = {}
    for enrolment, trial in lists.order_by("trial_set__name").values_list("enrolment_set", "trial_set"):
        by_enrolment.setdefault(enrolment, []).append(trial)
    if not by_enrolment:
        return []
    sizes = {pk: heard[pk].utterances.exclude(audio="").count() for trials in by_enrolment.values() for pk in trials}
    best = max(
        by_enrolment,
        key=lambda pk: (heard[pk].split == "test", sum(sizes[one] for one in by_enrolment[pk]), heard[pk].name),
    )
    return [heard[pk] for pk in (best, *by_enrolment[best])]


def _has_room(study: Study, data_sets: Sequence[DataSet]) -> bool:
    """Whether a session needs so few of the recordings that an allocation is found at once."""
    if study.form != Form.RATING:
        return True
    counts = dict.fromkeys((Role.TRIAL, Role.ENROLMENT), 0)
    for one in data_sets:
        counts[Role(one.role)] += one.utterances.exclude(audio="").count()
    return ROOM * study.trials_per_evaluator <= min(counts.values())


def _sizes(form: str, preset: str) -> list[dict[str, Any]]:
    """Fields of each size of a preset, the largest first."""
    chosen = PRESETS[preset]
    extras = chosen.extras if form == Form.RATING else dict.fromkeys(chosen.extras, 0)
    return [
        extras
        | {
            "evaluators": evaluators,
            "trials_per_evaluator": trials,
            "originals_per_evaluator": originals,
            "board_samples": samples,
        }
        for evaluators, trials, originals in chosen.sizes[form]
        for samples in (BOARD_SAMPLES[preset] if form == Form.LINKABILITY else [12])
    ]
