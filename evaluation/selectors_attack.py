"""Reads own attacks for pages and API: of each attacker its newest finished run, and what of it is under way.

A constant number of queries, however many runs and data sets. Whoever asks has been let in before: numbers follow the
same rule of visibility as objective ones (`portal.submissions.visibility`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from evaluation import attack_keys
from evaluation.encoders import EngineText, text_of
from evaluation.figures.style import ImageFormat, Theme
from evaluation.formats.claims import AttackModel, ClaimIdentity, Speech
from evaluation.models import EvaluationRun, ScoreSet
from evaluation.objective.attack import test_folder
from evaluation.objective.values import AVERAGE, DETECTION, Missing, Number, ObjectiveValues
from evaluation.protocols.recipes import Recipe
from evaluation.recognizers import registry as recognizers
from evaluation.selectors_objective import numbers_of, objective_values
from evaluation.selectors_recordings import Ground, TrialSetState
from portal.jobs.models import Job, State
from portal.submissions.models import Submission

VOICES = frozenset({"gain_of_voice_distinctiveness", "de_identification"})
_ATTACKS = list(AttackModel)


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

    @property
    def matrices_key(self) -> str:
        return attack_keys.matrices_key(self.run, self.data_set)

    def figure_key(self, theme: Theme = "light", kind: ImageFormat = "svg") -> str:
        return attack_keys.similarity_key(self.run, self.data_set, theme, kind)


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
    numbers: Mapping[ClaimIdentity, Number]
    score_sets: list[ScoreSet] = field(default_factory=list)
    missing: tuple[Missing, ...] = ()
    voices: list[VoiceFigures] = field(default_factory=list)
    speakers: Mapping[str, int] = field(default_factory=dict)

    @property
    def values(self) -> ObjectiveValues:
        """The same as pages read objective numbers."""
        return ObjectiveValues(self.run.submission_id, self.run.pk, self.finished_at, self.numbers, self.missing)

    @property
    def archive_key(self) -> str:
        """A stored zip of all score files and matrices in the official layout."""
        return attack_keys.archive_key(self.run.pk)

    def test_of(self, score_set: ScoreSet) -> str:
        """Name of the folder of a test, such as ``ASV-libri_dev_enrolls-libri_dev_trials_f_anon``."""
        data_set = self.recipe.data_sets[score_set.data_set]
        return test_folder(self.recipe, data_set, Speech(score_set.enrolment), Speech(score_set.speech))

    def scores_key(self, score_set: ScoreSet) -> str:
        """The stored Kaldi score file of a test."""
        return attack_keys.scores_key(self.run.pk, self.test_of(score_set))


def attacks_of(submission: Submission, as_of: datetime | None = None) -> list[AttackValues]:
    """Of each attacker its newest finished run, in the order in which they were first met: four queries.

    Args:
        as_of: what had finished by then, for a frozen board; None for now.
    """
    runs = finished_of(submission, EvaluationRun.Kind.ATTACK, as_of)
    if not runs:
        return []
    numbers = numbers_of(runs)
    score_sets: dict[int, list[ScoreSet]] = {}
    for one in ScoreSet.objects.filter(run__in=runs):
        score_sets.setdefault(one.run_id, []).append(one)
    recipe = Ground(submission).recipe
    return [_values_of(run, recipe, numbers.get(run.pk, {}), score_sets.get(run.pk, [])) for run in runs]


def _values_of(
    run: EvaluationRun, recipe: Recipe, numbers: Mapping[ClaimIdentity, Number], score_sets: list[ScoreSet]
) -> AttackValues:
    result = run.job.result if run.job else {}
    speakers: dict[str, int] = result.get("enrolled", {})
    known = [one for one in score_sets if one.data_set in recipe.data_sets]
    return AttackValues(
        run=run,
        engine=text_of(run),
        recipe=recipe,
        finished_at=run.job.finished_at if run.job else None,
        numbers=numbers,
        score_sets=known,
        missing=tuple(Missing(one["what"], one["reason"], one["is_ranked"]) for one in result.get("missing", [])),
        voices=[
            VoiceFigures(run.pk, name, alt, speakers.get(name, 0)) for name, alt in result.get("voices", {}).items()
        ],
        speakers=speakers,
    )


def finished_of(submission: Submission, kind: str, as_of: datetime | None = None) -> list[EvaluationRun]:
    """The newest finished run of each engine, in the order in which the engines were first met: one query."""
    runs = EvaluationRun.objects.filter(submission=submission, kind=kind, job__state=State.SUCCEEDED)
    if as_of is not None:
        runs = runs.filter(job__finished_at__lte=as_of)
    newest: dict[str, EvaluationRun] = {}
    for run in runs.select_related("job").order_by("pk"):
        run.submission = submission
        newest[run.engine] = run
    return list(newest.values())


def runs_of(submission: Submission, kind: str) -> list[EvaluationRun]:
    """Every run of a kind with its job, whatever became of it, the newest first."""
    return list(EvaluationRun.objects.filter(submission=submission, kind=kind).select_related("job").order_by("-pk"))


def engine_text(run: EvaluationRun) -> EngineText:
    """What attacks or recognises in a run, for people."""
    if run.kind != EvaluationRun.Kind.RECOGNITION:
        return text_of(run)
    key = run.parameters.get("engine_key", run.engine)
    engine = recognizers.engines().get(run.engine)
    if engine is None:
        return EngineText(run.engine, key, run.engine)
    return EngineText(engine.name, key, engine.title, engine.description, engine.licence, engine.source)


def trial_sets_of(submission: Submission) -> list[TrialSetState]:
    """The trial sets of its corpus that its recipe knows, each with the reason why it cannot be attacked."""
    return [one for one in Ground(submission).trial_sets() if one.data_set is not None]


def seconds_per_second(engine_key: str) -> float | None:
    """Seconds of work for a second of speech, as the newest job of this engine measured it; None where none has."""
    jobs = Job.objects.filter(
        kind__in=("vectors", "hypotheses"), state=State.SUCCEEDED, result__engine=engine_key, result__speech_s__gt=0
    )
    found = jobs.order_by("-finished_at").values_list("result", flat=True).first()
    return found["work_s"] / found["speech_s"] if found else None


# Own beside uploaded -------------------------------------------------------------------------------


@dataclass(frozen=True)
class ComparisonRow:
    """One number as the team's scores or claims give it, and as own attackers do, by key of the engine."""

    identity: ClaimIdentity
    uploaded: Number | None
    own: Mapping[str, Number]


@dataclass(frozen=True)
class Comparison:
    """Own attackers beside the team's."""

    engines: list[EngineText]
    rows: list[ComparisonRow]


def comparison(
    submission: Submission, as_of: datetime | None = None, attacks: Iterable[AttackValues] | None = None
) -> Comparison:
    """Every number of speaker verification and voices that an own attacker has, beside the uploaded one.

    Own and uploaded numbers of one identity answer the same question with other encoders; they need not agree.

    Args:
        attacks: what `attacks_of` found, where it is at hand.
    """
    found = list(attacks) if attacks is not None else attacks_of(submission, as_of)
    uploaded = objective_values([submission], as_of=as_of)[submission.pk].numbers if submission.system.edition else {}
    identities = dict.fromkeys(one for attack in found for one in attack.numbers)
    beside = (one for one in uploaded if found and (one.metric in DETECTION or one.metric in VOICES))
    identities |= dict.fromkeys(beside)
    rows = [
        ComparisonRow(
            one, uploaded.get(one),
            {attack.engine.key: attack.numbers[one] for attack in found if one in attack.numbers},
        )
        for one in sorted(identities, key=_order)
    ]  # fmt: skip
    return Comparison([attack.engine for attack in found], rows)


def _order(identity: ClaimIdentity) -> tuple[bool, str, int, str, str, str]:
    """Averages first, then data set by data set, from unprotected to semi-informed."""
    attack = identity.attack_model
    rung = _ATTACKS.index(attack) if attack is not None and identity.metric in DETECTION else len(_ATTACKS)
    trained = str(identity.training or "")
    is_single = not identity.data_set.startswith(AVERAGE)
    return is_single, identity.data_set, rung, identity.metric, identity.estimator, trained
