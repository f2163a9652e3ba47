"""The averages of an edition, from the numbers of their data sets; claimed averages beside them.

EERs, pitch and voice enter as they were recomputed, unrounded, for a limit is decided by them; a claimed average agrees
where it is the weighted sum of the printed values, as the official script adds them up, or of the unrounded ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from evaluation.formats.claims import Claim, ClaimIdentity, Gender, Speech
from evaluation.formats.problems import Problem
from evaluation.formats.result_lines import AVERAGE_DECIMALS
from evaluation.formats.results_2022 import claim_value, new_claim
from evaluation.metrics.averages import AverageError, weighted_average
from evaluation.metrics.bootstrap import Replicates, weighted_sum
from evaluation.metrics.catalogue import find_metric
from evaluation.objective.detection import PRINTED
from evaluation.objective.sources import Work
from evaluation.objective.values import DETECTION, Basis, Number, average_identity, averaged_attacks
from evaluation.protocols.recipes import Average

_ROUNDING = 0.5 * 10**-AVERAGE_DECIMALS + 1e-9


def add_averages(work: Work) -> None:
    """Every average of the track for each attack model or speech whose data sets are all there.

    Beside the EER that ranks, the ROCCH-EER by the same weights.
    """
    for average in work.sources.track.averages:
        for one in (average, *_beside(average)):
            for split, weights in one.weights.items():
                for identity in dict.fromkeys(_identities(work, one, split)):
                    members = [work.numbers.get(member_of(work, identity, name)) for name in weights]
                    _add(work, identity, dict(weights), members)


def member_of(work: Work, average: ClaimIdentity, data_set: str) -> ClaimIdentity:
    """The number of a data set that enters an average."""
    one = work.recipe.data_sets[data_set]
    return replace(average, data_set=data_set, gender=Gender(one.gender) if one.role == "trial" else Gender.ALL)


def _beside(average: Average) -> Iterator[Average]:
    if average.metric == "eer" and average.estimator != "rocch":
        yield replace(average, estimator="rocch")


def _identities(work: Work, average: Average, split: str) -> Iterator[ClaimIdentity]:
    if average.metric in DETECTION:
        for attack_model in averaged_attacks(work.recipe):
            yield average_identity(work.recipe, average, split, attack_model=attack_model)
    else:
        for speech in Speech:
            yield average_identity(work.recipe, average, split, speech=speech)


def _add(work: Work, identity: ClaimIdentity, weights: dict[str, float], members: list[Number | None]) -> None:
    present = [member for member in members if member is not None]
    try:
        value = weighted_average([(one.identity.data_set, one.value) for one in present], weights).value
        printed = weighted_average([(one.identity.data_set, _printed(one)) for one in present], weights).value
    except AverageError:
        return  # what is missing is said number by number
    basis = Basis.VALUES if all(one.is_recomputed for one in present) else Basis.CLAIM
    replicates = _replicates(work, weights, present)

    def agree(claim: Claim, _: float) -> bool:
        return bool(min(abs(claim.value - printed), abs(claim.value - value)) <= _ROUNDING)

    for claim in work.add(identity, value, basis, len(present), replicates=replicates, agree=agree):
        work.unlike[identity] = _unlike(claim, printed)


def _printed(number: Number) -> float:
    """A value as the official scripts print it."""
    identity = number.identity
    if (identity.metric, identity.estimator) not in PRINTED:
        return number.value
    return claim_value(new_claim(identity, number.value).written)


def _replicates(work: Work, weights: dict[str, float], members: list[Number]) -> Replicates | None:
    """The resampled average; none where a member has no interval."""
    parts = [(weights[one.identity.data_set], work.replicates.get(one.identity)) for one in members]
    known = [(weight, replicates) for weight, replicates in parts if replicates is not None]
    return weighted_sum(known) if len(known) == len(parts) else None


def _unlike(claim: Claim, value: float) -> Problem:
    identity = claim.identity
    metric = find_metric(identity.metric, identity.estimator)
    attack = f", {identity.attack_model}" if identity.attack_model else ""
    expected = f"{value:.{AVERAGE_DECIMALS}f} for the average {metric.label} of {identity.data_set}{attack}"
    remedy = "Average the numbers of one run by the weights of the edition."
    return Problem("unlike-average", claim.file, expected, f"“{claim.written}”", remedy, line=claim.line)
