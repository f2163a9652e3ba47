"""The numbers of a result as tables: a family of metrics each, a line for each data set and test.

Used by ``verify`` and ``compare``. Conventions: originals are “original”, anonymised speech “anonymised”.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from evaluation.commands.terminal import NONE, heading, say, say_table, show
from evaluation.formats.claims import AttackModel, Claim, ClaimIdentity, Gender, Speech
from evaluation.metrics.catalogue import find_metric

FAMILIES = ("Averages", "Speaker verification", "Speech recognition", "Emotion recognition", "Pitch and voices")
_GENDERS = {Gender.FEMALE: "f", Gender.MALE: "m", Gender.MIXED: "f and m", Gender.ALL: "all"}
_WITH_ESTIMATOR = {"wer"}
_LONGEST_NUMBER = 10

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Test:
    """What was tested, whatever the metric: one line of a table."""

    data_set: str
    gender: Gender
    training: Speech | None
    enrolment: Speech | None
    speech: Speech


def family(identity: ClaimIdentity) -> str:
    """The table that a number stands in."""
    if identity.data_set.startswith("average_"):
        return FAMILIES[0]
    if identity.enrolment is not None:
        return FAMILIES[1]
    if identity.metric == "wer":
        return FAMILIES[2]
    return FAMILIES[3] if identity.metric == "uar" or identity.metric.startswith("accuracy_") else FAMILIES[4]


def test_of(identity: ClaimIdentity) -> Test:
    """The test that a number is of."""
    return Test(identity.data_set, identity.gender, identity.training, identity.enrolment, identity.speech)


def attack(test: Test) -> str:
    """The attack model of a verification test; the models and speech of any other."""
    identity = ClaimIdentity(test.data_set, test.gender, "", "", test.training, test.enrolment, test.speech)
    model = identity.attack_model
    if model is None:
        return "" if test.training is None else f"{test.training} model, {test.speech} speech"
    retrained = test.training is Speech.ANONYMISED and model is not AttackModel.SEMI_INFORMED
    return f"{model}, retrained" if retrained else str(model)


def column(identity: ClaimIdentity) -> str:
    """The heading that a number stands under, with its unit."""
    metric = find_metric(identity.metric, identity.estimator)
    return heading(metric, detail=identity.estimator if identity.metric in _WITH_ESTIMATOR else "")


def written(claim: Claim) -> str:
    """The number as its file has it; one with all digits of a float is cut to those that mean something."""
    if len(claim.written) <= _LONGEST_NUMBER:
        return claim.written
    return show(claim.value, find_metric(claim.identity.metric, claim.identity.estimator))


def say_claims(claims: Iterable[Claim]) -> None:
    """Every number as it was written, a table for each family."""
    for name, members in _by_family(claims, lambda claim: claim.identity).items():
        columns = list(dict.fromkeys(column(claim.identity) for claim in members))
        rows: dict[Test, dict[str, str]] = {}
        for claim in members:
            rows.setdefault(test_of(claim.identity), {})[column(claim.identity)] = written(claim)
        say(f"\n{name}\n")
        tests = any(attack(test) for test in rows)
        header = ["data set", "gender", *(["test"] if tests else []), *columns]
        lines = [
            [
                test.data_set,
                _GENDERS[test.gender],
                *([attack(test)] if tests else []),
                *(cells.get(each, NONE) for each in columns),
            ]
            for test, cells in rows.items()
        ]
        say_table(header, lines, indent="  ")


def claim_row(claim: Claim) -> dict[str, object]:
    """One number for JSON, with everything that identifies it."""
    identity, model = claim.identity, claim.identity.attack_model
    row: dict[str, object] = {
        "data_set": identity.data_set,
        "gender": str(identity.gender),
        "metric": identity.metric,
        "estimator": identity.estimator,
        "key": find_metric(identity.metric, identity.estimator).key,
        "training": identity.training and str(identity.training),
        "enrolment": identity.enrolment and str(identity.enrolment),
        "speech": str(identity.speech),
        "attack_model": model and str(model),
        "value": claim.value,
        "unit": claim.unit,
        "written": claim.written,
        "file": claim.file,
        "line": claim.line,
    }
    if claim.counts:
        names = ("errors", "words", "insertions", "deletions", "substitutions")
        row["counts"] = {name: getattr(claim.counts, name) for name in names}
    return row


def in_order(identities: Iterable[ClaimIdentity]) -> list[ClaimIdentity]:
    """Identities by family, then as they came."""
    return [one for members in _by_family(identities, lambda each: each).values() for one in members]


def label_of(identity: ClaimIdentity) -> Sequence[str]:
    """Data set, gender, test and metric, in words."""
    return identity.data_set, _GENDERS[identity.gender], attack(test_of(identity)), column(identity)


def _by_family(items: Iterable[T], identity_of: Callable[[T], ClaimIdentity]) -> dict[str, list[T]]:
    found: dict[str, list[T]] = {name: [] for name in FAMILIES}
    for item in items:
        found[family(identity_of(item))].append(item)
    return {name: members for name, members in found.items() if members}
