"""Reads attacks of the portal evaluation for pages and API: of each attacker its newest finished run, and its files.

Numbers follow the same rule of visibility as objective ones (`portal.submissions.rules`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from evaluation.app.models import EvaluationRun, ScoreSet
from evaluation.app.runs.context import EvaluationContext
from evaluation.app.runs.kinds import ATTACK, EngineText, describe_engine
from evaluation.app.runs.portal_results import archive_key
from evaluation.app.runs.selectors import NumbersOfRuns, list_newest_finished, read_numbers
from evaluation.figures.style import ImageFormat, Theme
from evaluation.formats.results import NumberIdentity, Speech
from evaluation.objective_results.results.expected import detection_name
from evaluation.objective_results.track_averages import correct_averages
from evaluation.objective_results.values import MissingNumber, Number, ObjectiveValues, add_notes, read_missing
from evaluation.protocols.recipes import Recipe
from portal.submissions.models import Submission


def scores_key(run: int, test: str) -> str:
    """Return the Kaldi score file of a test, by the name of its folder (`detection_name`)."""
    return f"derived/attacks/{run}/{test}/scores"


def matrices_key(run: int, data_set: str) -> str:
    """Return similarity matrices of a trial set: an npz with `oo`, `op`, `pp` and `speakers`."""
    return f"derived/attacks/{run}/similarity-{data_set}.npz"


def similarity_key(run: int, data_set: str, theme: str = "light", image_format: str = "svg") -> str:
    """Return their figure."""
    return f"derived/figures/{run}/similarity-{data_set}-{theme}.{image_format}"


@dataclass(frozen=True)
class VoiceFigures:
    """The similarity matrices of a trial set: in words, as figures, as numbers.

    Attributes:
        alt: what the figure shows, for those who cannot see it.
        speakers: enrolled with the set.
        matrices_key: a stored npz with `oo`, `op`, `pp` and `speakers`.
    """

    run: int
    data_set: str
    alt: str
    speakers: int

    def figure_key(self, theme: Theme = "light", kind: ImageFormat = "svg") -> str:
        return similarity_key(self.run, self.data_set, theme, kind)


@dataclass(frozen=True)
class AttackValues:
    """What one attacker found.

    Attributes:
        numbers: by identity, as uploaded scores have them.
        missing: tests that could not be done, or not completely.
        speakers: of each trial set, how many are enrolled with it.
    """

    run: EvaluationRun
    engine: EngineText
    recipe: Recipe
    finished_at: datetime | None
    numbers: Mapping[NumberIdentity, Number]
    score_sets: list[ScoreSet] = field(default_factory=list)
    missing: tuple[MissingNumber, ...] = ()
    voices: list[VoiceFigures] = field(default_factory=list)
    speakers: Mapping[str, int] = field(default_factory=dict)

    @property
    def values(self) -> ObjectiveValues:
        """Return the same as pages read objective numbers."""
        return ObjectiveValues(self.run.submission_id, self.run.pk, self.finished_at, self.numbers, self.missing)

    @property
    def archive_key(self) -> str:
        """Return a stored zip of all score files and matrices in the official layout."""
        return archive_key(self.run.pk)

    def test_of(self, score_set: ScoreSet) -> str:
        """Name of the folder of a test, such as ``ASV-libri_dev_enrolls-libri_dev_trials_f_anon``."""
        data_set = self.recipe.data_sets[score_set.data_set]
        return detection_name(self.recipe, data_set, Speech(score_set.enrolment), Speech(score_set.speech))

    def scores_key(self, score_set: ScoreSet) -> str:
        """Return the stored Kaldi score file of a test."""
        return scores_key(self.run.pk, self.test_of(score_set))


def list_attacks(submission: Submission, as_of: datetime | None = None) -> list[AttackValues]:
    """Of each attacker its newest finished run, in the order in which they were first met: three queries.

    Args:
        as_of: what had finished by then, for a frozen leaderboard; None for now.
    """
    runs = list_newest_finished(ATTACK, [submission], as_of)
    return read_attacks(submission, runs, read_numbers(runs))


def read_attacks(submission: Submission, runs: list[EvaluationRun], numbers: NumbersOfRuns) -> list[AttackValues]:
    """Return what these finished attacks of a submission found, averaged as the recipe at hand weighs: a query where
    there are any.

    Args:
        numbers: of these runs at least.
    """
    if not runs:
        return []
    score_sets: dict[int, list[ScoreSet]] = {}
    for one in ScoreSet.objects.filter(run__in=runs):
        score_sets.setdefault(one.run_id, []).append(one)
    context = EvaluationContext(submission)
    recipe, track = context.recipe, context.track
    of_runs = {run.pk: correct_averages(numbers.get(run.pk, {}), recipe, track) for run in runs}
    return [_read_values(run, recipe, of_runs[run.pk], score_sets.get(run.pk, [])) for run in runs]


def _read_values(
    run: EvaluationRun, recipe: Recipe, numbers: Mapping[NumberIdentity, Number], score_sets: list[ScoreSet]
) -> AttackValues:
    result = run.job.result if run.job else {}
    speakers: dict[str, int] = result.get("enrolled", {})
    known = [one for one in score_sets if one.data_set in recipe.data_sets]
    missing = read_missing(result.get("missing", []))
    targets = {(one.data_set, one.attack_model): one.target_count for one in known}
    return AttackValues(
        run=run,
        engine=describe_engine(run),
        recipe=recipe,
        finished_at=run.job.finished_at if run.job else None,
        numbers=add_notes(numbers, recipe, missing, targets),
        score_sets=known,
        missing=missing,
        voices=[
            VoiceFigures(run.pk, name, alt, speakers.get(name, 0)) for name, alt in result.get("voices", {}).items()
        ],
        speakers=speakers,
    )
