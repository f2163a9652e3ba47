"""What a training measures, as plain values that are written, read and shown.

Error rates are shares of held-out segments that the classifier takes for another speaker, without the margin; beside
each stands what guessing would give. Conventions: epochs are counted from 1; None where a number does not exist.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any

import numpy as np

from evaluation.attackers.training.segments import Segments
from evaluation.metrics.errors import MetricInputError

Value = float | None

MEASURES = (
    "loss", "source_loss", "target_loss", "source_error", "target_error", "source_chance", "target_chance",
    "target_chance_known_gender", "learning_rate", "target_weight",
)  # fmt: skip


@dataclass(frozen=True)
class EpochRecord:
    """One epoch of a training.

    Attributes:
        epoch: from 1.
        seconds: it took, validation included.
        values: by the names in `MEASURES`.
    """

    epoch: int
    seconds: float
    values: Mapping[str, Value]


@dataclass(frozen=True)
class Estimate:
    """How long a training will take, judged by its first steps.

    Attributes:
        seconds_per_step: of the steps so far.
        steps_left: of the recogniser.
        seconds_left: for these, validation included.
    """

    seconds_per_step: float
    steps_left: int
    seconds_left: float


@dataclass(frozen=True)
class ProbeResult:
    """How often a fresh linear classifier of frozen vectors is wrong on vectors that it has not seen.

    Attributes:
        error: share of the test vectors.
        chance: error of guessing among the classes.
        n_train, n_test: vectors.
        classes: speakers told apart.
        split: what it was tested on: ``segment``, held-out segments of the same sources; ``training segment``, segments
            that the recogniser has learnt from, where none is held out; ``source``, other sources in training.
    """

    error: float
    chance: float
    n_train: int
    n_test: int
    classes: int
    split: str


@dataclass(frozen=True)
class Chance:
    """Errors of guessing.

    Attributes:
        source: among all sources.
        target: among all targets; None where targets are unknown.
        target_known_gender: among the targets that sources of the same gender get, which is what a recogniser that only
            hears the gender can reach; None where targets or genders are unknown.
    """

    source: float
    target: Value
    target_known_gender: Value


@dataclass(frozen=True)
class FinalValues:
    """A training that has ended.

    Attributes:
        source_error, target_error: validation errors (VER_S, VER_T) of the weights that were kept.
        source_chance, target_chance, target_chance_known_gender: as in `Chance`.
        training_segments, held_out_segments, n_sources, n_targets: counts.
        seconds: of all epochs.
        target_probe: error of a fresh probe on targets, other segments.
        target_probe_other_sources: the same where the test sources are others than those it was fitted on.
        source_probe: error of a fresh probe on sources.
        unused_utterances: none of whose pieces is as long and as loud as the recipe wants; they taught nothing.
    """

    source_error: Value
    target_error: Value
    source_chance: float
    target_chance: Value
    target_chance_known_gender: Value
    training_segments: int
    held_out_segments: int
    n_sources: int
    n_targets: int
    seconds: float
    target_probe: ProbeResult | None
    target_probe_other_sources: ProbeResult | None
    source_probe: ProbeResult | None
    unused_utterances: int = 0

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> FinalValues:
        """From what `dataclasses.asdict` gave.

        Raises:
            KeyError, TypeError: other content.
        """
        values = {
            field.name: given[field.name] for field in fields(cls) if field.name in given or field.default is MISSING
        }
        for name in ("target_probe", "target_probe_other_sources", "source_probe"):
            values[name] = None if values[name] is None else ProbeResult(**values[name])
        return cls(**values)


def chance_levels(segments: Segments) -> Chance:
    """What guessing gives on the held-out rows; on all rows where none is held out."""
    target = 1 - 1 / len(segments.targets) if segments.targets else None
    known_gender: Value = None
    genders = np.unique(segments.gender)
    if segments.targets and genders.size and "" not in genders:
        seen = {str(one): len(np.unique(segments.target[segments.gender == one])) for one in genders}
        rows = segments.validation_rows if segments.held_out.any() else segments.training_rows
        known_gender = float(np.mean([1 - 1 / seen[str(one)] for one in segments.gender[rows]]))
    return Chance(1 - 1 / len(segments.sources), target, known_gender)


def epochs_csv(records: Sequence[EpochRecord]) -> str:
    """A line for each epoch; numbers read back the same, an empty cell is a number that does not exist."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["epoch", "seconds", *MEASURES])
    for one in records:
        cells = [one.values.get(name) for name in MEASURES]
        writer.writerow([one.epoch, repr(one.seconds), *("" if cell is None else repr(cell) for cell in cells)])
    return text.getvalue()


def epochs_of_csv(text: str, name: str) -> tuple[EpochRecord, ...]:
    """The epochs of `epochs_csv`.

    Raises:
        MetricInputError: other content; names the file.
    """
    try:
        rows = list(csv.DictReader(io.StringIO(text)))
        return tuple(
            EpochRecord(
                int(row["epoch"]),
                float(row["seconds"]),
                {each: float(row[each]) if row[each] else None for each in MEASURES},
            )
            for row in rows
        )
    except (KeyError, ValueError, TypeError, csv.Error) as error:
        raise MetricInputError(f"{name}: expected the values of the epochs of a training, found other text.") from error


def records_to_plain(records: Sequence[EpochRecord]) -> list[dict[str, Any]]:
    """For a checkpoint."""
    return [asdict(one) for one in records]
