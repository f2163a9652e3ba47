"""The kinds of evaluation runs, each declared once: its jobs, its engines, and which of its runs counts.

Whatever its kind, a run goes one way. `services.start_run` saves it with its chain of jobs; the handlers of its feature
do the work; `services.store_numbers` keeps what they found; `selectors` find the newest finished run again, and say
for pages and API how far the others are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

from evaluation.app.models import EvaluationRun
from evaluation.attackers.trial_scores import PRESETS
from evaluation.formats.results import Speech
from evaluation.protocols.published import is_as_shipped
from evaluation.protocols.recipes import Recipe
from portal.submissions.models import Submission
from speech.encoders import registry as encoders
from speech.recognizers import registry as recognizers


@dataclass(frozen=True)
class RunKind:
    """A kind of runs.

    Attributes:
        version: of its method, kept with each run; raised whenever the same input gives other numbers.
        job: kind of the job that computes its numbers and ends the run; others may stand in for it, such as on a
            graphics card.
        counts_by: field of a run; of the runs of a submission with the same value the newest finished one counts, and
            of attacks each that compares vectors in its own way (`name_preset`).
    """

    kind: EvaluationRun.Kind
    version: str
    job: str
    counts_by: str

    def make_run(self, submission: Submission, **fields: Any) -> EvaluationRun:
        """Return a run of this kind, to be saved."""
        return EvaluationRun(submission=submission, kind=self.kind, recipe_version=self.version, **fields)


@dataclass(frozen=True)
class EngineRunKind(RunKind):
    """A kind of runs in which an engine goes over the speech of several data sets, original and anonymised.

    Attributes:
        data_set_job: kind of the jobs before the last, one for each data set, that fill the feature cache.
        data_set_title, title: of these jobs and the last, before the title of the engine.
        engines: a registry, `speech.encoders.registry` or `speech.recognizers.registry`.
        set_name: what it goes over, in the plural.
        no_set: why nothing can be chosen where there is no such set.
    """

    data_set_job: str
    data_set_title: str
    title: str
    engines: ModuleType
    set_name: str
    no_set: str


Kind = EvaluationRun.Kind
MEASURES = RunKind(Kind.MEASURES, "2", "measure", counts_by="data_set_id")
OBJECTIVE = RunKind(Kind.OBJECTIVE, "1", "objective", counts_by="submission_id")
TRAINING = RunKind(Kind.TRAINING, "1", "train-attacker", counts_by="pk")
ATTACK = EngineRunKind(
    Kind.ATTACK,
    "1",
    "attack",
    counts_by="engine",
    data_set_job="vectors",
    data_set_title="Speaker vectors by",
    title="Attack by",
    engines=encoders,
    set_name="trial sets",
    no_set="There is no trial set to attack: import the corpus with its trial lists.",
)
RECOGNITION = EngineRunKind(
    Kind.RECOGNITION,
    "2",
    "recognition",
    counts_by="engine",
    data_set_job="hypotheses",
    data_set_title="Words by",
    title="Recognition by",
    engines=recognizers,
    set_name="data sets",
    no_set="The submission holds no speech of an enrolment or trial set.",
)
RETRAINED = RunKind(Kind.RETRAINED, "1", "retrained-recognition", counts_by="submission_id")
PHONE_TRAINING = "phone-training"  # the jobs before it, one for each form of speech
ENGINE_KINDS = (ATTACK, RECOGNITION)
# Runs that are a chain of jobs, which is cancelled and continued as one.
CHAINED_KINDS: tuple[RunKind, ...] = (*ENGINE_KINDS, RETRAINED)
CHAINED_JOBS = (*(name for one in ENGINE_KINDS for name in (one.data_set_job, one.job)), PHONE_TRAINING, RETRAINED.job)


def name_preset(run: EvaluationRun) -> str:
    """Return how an attack by a shipped encoder compares vectors (`evaluation.attackers.trial_scores.PRESETS`) where it
    was asked for another way than the usual one; empty for all other runs. The name of a trained attacker tells its
    own.
    """
    return "" if "trained" in run.parameters else str(run.parameters.get("preset", ""))


@dataclass(frozen=True)
class EngineText:
    """What attacks or recognises in a run, for people.

    Attributes:
        key: name and version.
        training: the speech that it was trained on.
    """

    name: str
    key: str
    title: str
    description: str = ""
    licence: str = ""
    source: str = ""
    training: Speech = Speech.ORIGINAL


TRAINED_TEXTS = {
    Speech.ANONYMISED: "Trained by this portal on speech that the attacked system anonymised (semi-informed).",
    Speech.ORIGINAL: "Trained by this portal on original speech.",
}


PHONES_TEXT = EngineText(
    "phones",
    "phones@1",
    "Retrained phone recogniser",
    "A small network on a middle layer of Whisper base, trained by CTC once on original and once on anonymised speech.",
    "MIT (Whisper)",
    "A. Graves et al., ICML 2006; A. Radford et al., ICML 2023",
)


def describe_engine(run: EvaluationRun) -> EngineText:
    """Return what attacks or recognises in a run; an engine that this portal has no more stands by its name."""
    key = run.parameters.get("engine_key", run.engine)
    if run.kind == RETRAINED.kind:
        return PHONES_TEXT
    if "trained" in run.parameters:  # as `evaluation.app.attacks.stored_attackers.attack_parameters` describes it
        training = Speech(run.parameters.get("trained_on", Speech.ANONYMISED))
        return EngineText(
            run.engine,
            run.engine,
            f"{run.parameters['recipe']} trained on {training} speech, {run.parameters['scoring']}, seed "
            f"{run.parameters['seed']} (training {run.parameters['trained']})",
            TRAINED_TEXTS[training],
            training=training,
        )
    registry = next((one.engines for one in ENGINE_KINDS if one.kind == run.kind), encoders)
    engine = registry.engines().get(run.engine)
    if engine is None:
        return EngineText(run.engine, key, run.engine)
    text = EngineText(engine.name, key, engine.title, engine.description, engine.licence, engine.source)
    if preset := name_preset(run):
        compared = f"{text.description} Compared by the {PRESETS[preset].description}." if preset in PRESETS else ""
        name, key, title = f"{text.name}-{preset}", f"{key}-{preset}", f"{text.title}, preset {preset}"
        return replace(text, name=name, key=key, title=title, description=compared or text.description)
    return text


def describe_evaluators(recipe: Recipe) -> str:
    """Who computes the numbers of an edition, in words."""
    evaluation = recipe.evaluation
    if not evaluation.by_portal:
        return "the teams; what follows from their files is recomputed"
    named = [(ATTACK, name) for name in evaluation.attackers[:1]]
    named += [(RECOGNITION, evaluation.recognizer)] if evaluation.recognizer else []
    engines = [engine for kind, name in named if (engine := kind.engines.engines().get(name)) is not None]
    words = by_engines({engine.key: engine.title for engine in engines})
    return f"{words}; numbers of the teams are listed next to them" if evaluation.by_teams else words


def explain_unlike_papers(recipe: Recipe, corpus: object) -> str:
    """Return why baselines have other numbers than in papers; empty where an edition measures as the challenge did.

    Args:
        corpus: whose speech it is; None where only the recipe names it.
    """
    if not recipe.evaluation.by_portal and is_as_shipped(recipe):
        return ""
    speech = f"on the speech of {corpus}" if corpus else "on other speech"
    words = ", often far fewer word errors" if recipe.evaluation.recognizer else ""
    evaluators = f" by {describe_evaluators(recipe)}" if recipe.evaluation.by_portal else ""
    return (
        f"Papers print other numbers of baselines with the same names{words}: they rest on other speech, recognisers "
        f"and attackers. Here everything was measured {speech}{evaluators}. Compare systems of one leaderboard with "
        "each other."
    )


def by_engines(engines: Mapping[str, str]) -> str:
    """Such as ``the portal with WeSpeaker ResNet34, version 1``, of titles by key; empty of none."""
    versions = {key: key.rpartition("@")[2] for key in engines if "@" in key}
    named = [f"{title}, version {versions[key]}" if key in versions else title for key, title in engines.items()]
    return f"the portal with {' and '.join(named)}" if named else ""
