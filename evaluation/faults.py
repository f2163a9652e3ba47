"""What is out of order in anonymised utterances: what each code means to a reader, and who has it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from django.db.models import Count, F, Q, Window
from django.db.models.functions import RowNumber

from evaluation.formats.problems import Severity
from evaluation.metrics.audio_checks import MAX_CLIPPED_SHARE, MAX_DURATION_DIFFERENCE_MS, MAX_LEVEL_CHANGE_DB
from evaluation.metrics.catalogue import DURATION_DIFFERENCE, LEVEL_CHANGE
from evaluation.models import EvaluationRun, UtteranceMeasure
from evaluation.selectors import measures_of, number_text
from portal.core.wording import decimals


@dataclass(frozen=True)
class Fault:
    """What a code of `UtteranceMeasure.faults` means to a reader."""

    title: str
    meaning: str
    severity: Severity


FAULTS = {
    "not-finite": Fault("Samples that are no numbers", "Some samples are NaN or infinite.", Severity.ERROR),
    "silent": Fault("Silent", "The anonymised utterance is empty or digital silence.", Severity.ERROR),
    "identical-to-original": Fault(
        "Not anonymised", "Every sample equals the original: this speech is not protected at all.", Severity.ERROR
    ),
    "duration-differs": Fault(
        "Another duration",
        f"The duration differs by more than {MAX_DURATION_DIFFERENCE_MS:g} ms, where the recipe of 2022 warns.",
        Severity.WARNING,
    ),
    "clipped": Fault(
        "Clipped", f"More than {MAX_CLIPPED_SHARE:.1%} of the samples are at full scale.", Severity.WARNING
    ),
    "pitch-not-measured": Fault(
        "Without pitch correlation",
        "Too short for an F0 contour; left out of the pitch correlation, as n tells.",
        Severity.WARNING,
    ),
    "level-changed": Fault(
        f"Level changed by more than {MAX_LEVEL_CHANGE_DB:g} dB",
        "Fine where the anonymiser normalises levels on purpose, as B2 does with the peak of each utterance.",
        Severity.NOTE,
    ),
}
_SEVERITIES = (Severity.ERROR, Severity.WARNING, Severity.NOTE)


def audio_text(measure: UtteranceMeasure) -> str:
    """Level, duration and peak of an utterance in words."""
    level = number_text(measure.level_change_db, LEVEL_CHANGE)
    parts = [f"level {level} dB" if level else "level not comparable"]
    parts.append(f"duration {number_text(measure.duration_difference_ms, DURATION_DIFFERENCE)} ms")
    if measure.peak_dbfs is not None:
        parts.append(f"peak {decimals(measure.peak_dbfs, 1)} dBFS")
    return ", ".join(parts)


@dataclass(frozen=True)
class FaultGroup:
    """All utterances with one fault: how many, and the first of them, each with its audio in words."""

    fault: Fault
    count: int
    examples: list[tuple[UtteranceMeasure, str]]

    @property
    def more(self) -> int:
        return self.count - len(self.examples)


def fault_groups(runs: list[EvaluationRun], count: int = 10) -> list[FaultGroup]:
    """Utterances with anything out of order by cause, the gravest first, in two queries whatever their number."""
    faulty = UtteranceMeasure.objects.filter(~Q(faults=[]), run__in=runs)
    counts: Counter[str] = Counter()
    for codes, n in faulty.order_by().values_list("faults").annotate(Count("pk")):
        counts.update(dict.fromkeys(codes, n))
    rank = Window(RowNumber(), partition_by=F("faults"), order_by=F("pk").asc())
    first = faulty.annotate(rank=rank).filter(rank__lte=count).values("pk")
    shown = list(measures_of(*runs).filter(pk__in=first).order_by("file__data_set__name", "file__utterance__name"))
    groups = [
        FaultGroup(fault_of(code), n, [(m, audio_text(m)) for m in shown if code in m.faults][:count])
        for code, n in counts.items()
    ]
    return sorted(groups, key=lambda group: (_SEVERITIES.index(group.fault.severity), -group.count))


def fault_of(code: str) -> Fault:
    """What a code means; a code of another version of the portal stands for itself."""
    return FAULTS.get(code, Fault(code, "", Severity.WARNING))
