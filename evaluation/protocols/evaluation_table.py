"""Who computes the numbers of an edition: the table ``[evaluation]`` of its recipe, and what has to hold of it.

Where the portal does, a recipe names the engines that attack and recognise, and may rank only by what they give.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

EVALUATORS = ("teams", "portal", "both")
SEMI_INFORMED = "semi-informed"
UNTRAINED_ATTACKS = ("unprotected", "ignorant", "lazy-informed")
# What the portal computes by itself of speech, by the keys of the catalogue of metrics.
PORTAL_METRICS = (
    "eer",
    "cllr",
    "min_cllr",
    "linkability",
    "zebra_population",
    "zebra_individual",
    "auc",
    "min_dcf_01",
    "min_dcf_001",
    "wer",
    "pitch_correlation",
    "de_identification",
    "gain_of_voice_distinctiveness",
)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Who computes the numbers of an edition.

    Attributes:
        by: ``teams`` (each hands in scores and results), ``portal`` (teams hand in speech alone) or ``both`` (the
            portal's numbers rank, the team's are listed next to them).
        attackers: engines of `speech.encoders` that attack every trial set; the first one ranks.
        recognizer: engine of `speech.recognizers` for word error rates; "" for none.
        training: recipe of `evaluation.attackers.training` for a semi-informed attacker; "" for none.
    """

    by: str = "teams"
    attackers: tuple[str, ...] = ()
    recognizer: str = ""
    training: str = ""

    @property
    def by_portal(self) -> bool:
        """Return whether the portal attacks and recognises the speech of a submission, and ranks by what it finds."""
        return self.by in ("portal", "both")

    @property
    def by_teams(self) -> bool:
        """Return whether a submission holds the team's own scores and results."""
        return self.by in ("teams", "both")

    @property
    def attacks(self) -> tuple[str, ...]:
        """Return the attack models that the portal computes, the weakest first."""
        if not self.by_portal:
            return ()
        return (*UNTRAINED_ATTACKS, SEMI_INFORMED) if self.training else UNTRAINED_ATTACKS


BY_TEAMS = Evaluation()


@dataclass(frozen=True, slots=True)
class KnownEngines:
    """What a recipe may name: attackers, recognisers, and recipes of training."""

    attackers: Collection[str]
    recognizers: Collection[str]
    trainings: Collection[str]


@dataclass(frozen=True, slots=True)
class AveragedMetric:
    """A metric that a track averages; `place` names it in sentences."""

    place: str
    metric: str
    estimator: str


def evaluation_problems(evaluation: Evaluation, roles: Collection[str], engines: KnownEngines | None) -> Iterator[str]:
    """Yield what is wrong with the table itself, each a sentence.

    Args:
        roles: of the data sets of the recipe.
        engines: those that there are; None to take any name.
    """
    if evaluation.by not in EVALUATORS:
        yield f"evaluation.by: expected one of {', '.join(EVALUATORS)}, found “{evaluation.by}”."
        return
    if evaluation.by == "teams":
        if any((evaluation.attackers, evaluation.recognizer, evaluation.training)):
            yield "evaluation: expected by = “portal” or “both” where engines are named, found by = “teams”."
        return
    if not evaluation.attackers:
        yield "evaluation.attackers: expected at least one attacker, found none."
    if len(set(evaluation.attackers)) < len(evaluation.attackers):
        yield f"evaluation.attackers: expected each attacker once, found {', '.join(evaluation.attackers)}."
    if engines is not None:
        named = [("attackers", name, engines.attackers) for name in evaluation.attackers]
        named.append(("recognizer", evaluation.recognizer, engines.recognizers))
        named.append(("training", evaluation.training, engines.trainings))
        for field, name, known in named:
            if name not in known and (name or field == "attackers"):
                yield f"evaluation.{field}: expected one of {', '.join(known)}, found “{name}”."
    if evaluation.training and "training" not in roles:
        yield "evaluation.training: expected a data set of the role training in the recipe, found none."


def track_problems(
    evaluation: Evaluation, track: str, attack_model: str, averages: Iterable[AveragedMetric], wer_estimator: str
) -> Iterator[str]:
    """Yield what a track ranks or averages by although the portal does not compute it: it could never rank anything.

    Args:
        attack_model: that it ranks by; "" where it ranks nothing.
        wer_estimator: what the edition calls the word error rates of its recogniser.
    """
    if not evaluation.by_portal:
        return
    if attack_model and attack_model not in evaluation.attacks:
        expected = f"one of {', '.join(evaluation.attacks)}, which the portal computes"
        more = "" if evaluation.training else f" ({SEMI_INFORMED} needs evaluation.training)"
        yield f"tracks.{track}.ranking.attack_model: expected {expected}{more}, found “{attack_model}”."
    for one in averages:
        if one.metric == "wer" and not evaluation.recognizer:
            yield f"{one.place}: expected evaluation.recognizer, which word error rates need, found none."
        elif one.metric == "wer" and one.estimator != wer_estimator:
            expected = f"the estimator “{wer_estimator}”" if wer_estimator else "no estimator"
            yield f"{one.place}: expected {expected} of word error rates, found “{one.estimator}”."
        elif one.metric not in PORTAL_METRICS:
            expected = f"a metric that the portal computes ({', '.join(PORTAL_METRICS)})"
            yield f"{one.place}: expected {expected}, found “{one.metric}”."
