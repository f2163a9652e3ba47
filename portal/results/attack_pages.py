"""What the page of the portal's own attackers shows, and what the page of a system says of them.

Own numbers stand beside those of the uploaded scores and never in their place. They are public when the other numbers
of the system are; score files, which name speakers and utterances, are its own people's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import Http404, HttpRequest

from anonymization.models import AnonymizationRun
from evaluation.encoders import EngineText
from evaluation.figures.det import size_of
from evaluation.figures.style import ImageFormat, Size
from evaluation.formats.claims import AttackModel, ClaimIdentity, Speech
from evaluation.metrics.catalogue import find_metric
from evaluation.models import EvaluationRun, ScoreSet
from evaluation.objective.values import Number, ObjectiveValues
from evaluation.objective.voice_extras import WORTH
from evaluation.objective_figures import curves_by_set, det_key, estimator_of
from evaluation.selectors_attack import AttackValues, VoiceFigures, attacks_of, runs_of
from portal.core.media import signed_address
from portal.core.wording import decimals
from portal.results.attack_ladder import LadderReading, read_ladders
from portal.results.attack_tables import (
    UPLOADED,
    Attacker,
    eer_table,
    extras_table,
    further_table,
    ladders_of,
    targets_of,
    voices_table,
)
from portal.results.engine_runs import EngineRuns, is_organizer, unfinished_runs
from portal.results.objective_pages import numbers_of
from portal.results.objective_tables import Table
from portal.results.shown import View

KINDS: tuple[ImageFormat, ...] = ("svg", "png", "pdf")
USUAL_ESTIMATOR = "kaldi"
ATTACK = EvaluationRun.Kind.ATTACK


@dataclass(frozen=True)
class OwnFigure:
    """A figure for light and dark pages, with its words and files."""

    title: str
    engine: str
    image: str
    dark: str
    alt: str
    downloads: list[dict[str, str]]
    size: Size | None = None


@dataclass(frozen=True)
class Engine:
    """One of the attackers as the page describes it.

    Attributes:
        files: the score sets of its run, for those who may have them.
        missing: numbers that it could not reach, with the reason.
    """

    text: EngineText
    run: EvaluationRun
    finished_at: datetime | None
    files: list[ScoreSet]
    missing: tuple[Any, ...]


def attack_page(request: HttpRequest, view: View) -> dict[str, Any]:
    """Everything about the attacks on a submission; whoever may not see its jobs meets numbers only."""
    found = attacks_of(view.submission, as_of=as_of(view))
    runs = unfinished_attacks(view)
    if not found and not view.is_own:
        raise Http404
    uploaded = numbers_of(view) if view.system.edition else None
    attackers, estimator = attackers_of(found, uploaded), estimator_for(view)
    further, voices, extras = further_table(attackers, estimator), voices_table(attackers), extras_table(attackers)
    return {
        **_frame(view),
        "runs": runs,
        "engines": [_engine(one, view) for one in found],
        "table": eer_table(attackers, estimator) if found else None,
        "reading": _reading(view, attackers, estimator),
        "has_uploaded": any(not attacker.is_own for attacker in attackers),
        "further": further if further.groups else None,
        "voices": voices if voices.groups else None,
        "extras": extras if extras.groups else None,
        "extras_worth": [(find_metric(metric).label, sentence) for metric, sentence in WORTH.items()],
        "det_figures": [figure for one in found for figure in _det_figures(request, one, estimator)],
        "voice_figures": [
            _voice_figure(request, one, voice)
            for one in found
            for voice in sorted(one.voices, key=lambda voice: voice.data_set)
        ],
    }


@dataclass(frozen=True)
class OwnSection:
    """What the page of a system says of this portal's own attackers."""

    table: Table | None
    reading: LadderReading | None
    runs: EngineRuns | None
    is_organizer: bool


def own_section(view: View, uploaded: ObjectiveValues | None, every: list[EvaluationRun]) -> OwnSection | None:
    """The short form for the page of a system; None where there is nothing to say to this reader.

    Args:
        uploaded: the numbers of the submission's own files, where it belongs to an edition.
        every: all attacks on the submission, the newest first, whatever became of them.
    """
    organizes = is_organizer(view)
    found = attacks_of(view.submission, as_of=as_of(view)) if every else []
    runs = unfinished_runs(every) if view.is_own and every else None
    if not found and runs is None:
        return OwnSection(None, None, None, organizes) if organizes else None
    attackers, estimator = attackers_of(found, uploaded), estimator_for(view)
    table = eer_table(attackers, estimator) if found else None
    return OwnSection(table, _reading(view, attackers, estimator), runs, organizes)


def _reading(view: View, attackers: list[Attacker], estimator: str) -> LadderReading:
    """What the order of the attack models says. Of a method run here it is known who shares a voice."""
    own = [attacker for attacker in attackers if attacker.is_own]
    by_speaker = AnonymizationRun.Level.SPEAKER
    apart = bool(own) and view.submission.anonymization_runs.filter(level=by_speaker).exists()
    return read_ladders(ladders_of(own, estimator, drawn_apart=apart))


def unfinished_attacks(view: View) -> EngineRuns | None:
    """The attacks under way or stopped, for the system's own people."""
    return unfinished_runs(runs_of(view.submission, ATTACK)) if view.is_own else None


def attackers_of(found: list[AttackValues], uploaded: ObjectiveValues | None) -> list[Attacker]:
    """The own attackers, and first the one whose scores the team uploaded, where it did for something they measured."""
    own = [
        Attacker(
            title=one.engine.title,
            numbers=one.numbers,
            is_trained=one.engine.training is Speech.ANONYMISED,
            targets=targets_of(one.score_sets),
            speakers=one.speakers,
        )
        for one in found
    ]
    sets = {identity.data_set for attacker in own for identity in attacker.numbers}
    numbers = _of_sets(uploaded, sets)
    return [Attacker(UPLOADED, numbers, is_own=False), *own] if numbers else own


def _of_sets(uploaded: ObjectiveValues | None, sets: set[str]) -> Mapping[ClaimIdentity, Number]:
    if uploaded is None:
        return {}
    return {
        identity: number
        for identity, number in uploaded.numbers.items()
        if identity.data_set in sets and (identity.attack_model is not None or number.metric.key in _VOICES)
    }


_VOICES = frozenset({"gain_of_voice_distinctiveness", "de_identification"})


def estimator_for(view: View) -> str:
    """Whose equal error rate is shown: that of the edition."""
    edition = view.system.edition
    return estimator_of(edition.recipe) if edition else USUAL_ESTIMATOR


def as_of(view: View) -> datetime | None:
    """A public page of a frozen board shows what had been measured by its time."""
    edition = view.system.edition
    return edition.frozen_at if edition and not view.is_own else None


def _frame(view: View) -> dict[str, Any]:
    system = view.system
    return {
        "system": system,
        "edition": system.edition,
        "corpus": system.corpus,
        "submission": view.submission,
        "is_own": view.is_own,
        "is_organizer": is_organizer(view),
        "version_query": view.query,
    }


def _engine(one: AttackValues, view: View) -> Engine:
    files = list(one.score_sets) if view.is_own else []
    return Engine(one.engine, one.run, one.finished_at, files, one.missing if view.is_own else ())


def _det_figures(request: HttpRequest, one: AttackValues, estimator: str) -> list[OwnFigure]:
    metric = find_metric("eer", estimator)
    figures = []
    for data_set, tests in curves_by_set(one.score_sets).items():
        said = []
        for attack in tests:
            number = one.values.number("eer", estimator, data_set=data_set, attack_model=AttackModel(attack))
            if number is not None:
                said.append(f"{attack} {decimals(number.value, metric.decimals)} %")
        keys = {kind: det_key(one.run.pk, data_set, "light", kind) for kind in KINDS}
        figures.append(
            OwnFigure(
                title=data_set,
                engine=one.engine.title,
                image=signed_address(request, keys["svg"]),
                dark=signed_address(request, det_key(one.run.pk, data_set, "dark")),
                alt=f"DET curves of {data_set} by {one.engine.title}. {metric.label}: {', '.join(said)}.",
                downloads=_downloads(request, keys),
                size=size_of(len(tests)),
            )
        )
    return figures


def _voice_figure(request: HttpRequest, one: AttackValues, voice: VoiceFigures) -> OwnFigure:
    keys = {kind: voice.figure_key("light", kind) for kind in KINDS}
    return OwnFigure(
        title=voice.data_set,
        engine=one.engine.title,
        image=signed_address(request, keys["svg"]),
        dark=signed_address(request, voice.figure_key("dark", "svg")),
        alt=f"Voice similarity matrices of {voice.data_set} by {one.engine.title}. {voice.alt}",
        downloads=_downloads(request, keys),
    )


def _downloads(request: HttpRequest, keys: Mapping[ImageFormat, str]) -> list[dict[str, str]]:
    return [{"label": kind.upper(), "url": signed_address(request, key)} for kind, key in keys.items()]
