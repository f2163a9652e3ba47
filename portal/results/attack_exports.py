"""The numbers of the portal's own attackers as CSV and JSON, in full precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.http import Http404

from evaluation.objective.values import BASES, Number
from evaluation.selectors_attack import AttackValues, attacks_of
from portal.results.attack_pages import as_of
from portal.results.shown import View

COLUMNS = (
    "attacker", "data_set", "gender", "metric", "estimator", "attack_model", "training", "enrolment", "speech", "unit",
    "better", "value", "low", "high", "n", "basis",
)  # fmt: skip


def attack_rows(view: View) -> Iterator[tuple[Any, ...]]:
    """A header, then every number of every own attacker with all that identifies it."""
    yield ("system", "version", *COLUMNS)
    for one in _found(view):
        for number in one.numbers.values():
            yield (view.system.name, view.submission.version, *_cells(one, number, number.letter or number.value))


def attacks_as_dict(view: View) -> dict[str, Any]:
    """The same for JSON."""
    found = _found(view)
    return {
        "system": view.system.name,
        "version": view.submission.version,
        "attackers": [
            {
                "name": one.engine.name,
                "key": one.engine.key,
                "title": one.engine.title,
                "description": one.engine.description,
                "source": one.engine.source,
                "licence": one.engine.licence,
                "measured_at": one.finished_at.isoformat() if one.finished_at else None,
            }
            for one in found
        ],
        "numbers": [
            dict(zip(COLUMNS, _cells(one, number, number.value), strict=True))
            for one in found
            for number in one.numbers.values()
        ],
    }


def _found(view: View) -> list[AttackValues]:
    found = attacks_of(view.submission, as_of=as_of(view))
    if not found:
        raise Http404
    return found


def _cells(one: AttackValues, number: Number, value: float | str) -> tuple[Any, ...]:
    identity, metric = number.identity, number.metric
    return (
        one.engine.key,
        identity.data_set,
        str(identity.gender),
        identity.metric,
        identity.estimator,
        str(identity.attack_model or ""),
        str(identity.training or ""),
        str(identity.enrolment or ""),
        str(identity.speech),
        metric.unit,
        str(metric.direction),
        value,
        number.low,
        number.high,
        number.n,
        BASES[number.basis],
    )
