"""A listening test of recordings of one's own: from an archive to a design whose stimuli are being made."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from django.db import transaction

from common.errors import ProblemsError
from common.wording import name_some
from listening.app.models import Condition, Item, Stimulus, Study
from listening.app.recordings.archives import FoundRecordings, read_recordings
from listening.app.studies.designing import draw_lot
from listening.app.studies.services import create_study, prepare_study, start_design
from listening.questions import load_preset
from listening.stimuli.making import Loudness
from portal.core import audit
from portal.core.storage import adopt_file, content_key
from portal.corpora.handlers import unpacking_folder
from portal.intake.archives.limits import GIGABYTE

LARGEST_ARCHIVE = 2 * GIGABYTE
RATES_HZ = (16_000, 22_050, 24_000, 32_000, 44_100, 48_000)
Kind = Condition.Kind
PRESETS = ("mos", "p835", "own")  # that ask about single recordings
USUAL_TRIALS, FEWEST_EVALUATORS, MOST_EVALUATORS, RATINGS_OF_EACH = 60, 24, 500, 12


@dataclass(frozen=True)
class OwnTest:
    """What is chosen for a test; what is left out follows from the recordings.

    Attributes:
        preset: what is asked about each recording, of `PRESETS`.
        original: the condition with which the others are compared.
        references: conditions that are references.
        rate_hz, channels: of all stimuli; as most recordings have, and stereo as soon as one is.
    """

    name: str
    title: str
    preset: str = PRESETS[0]
    original: str = ""
    references: tuple[str, ...] = ()
    rate_hz: int | None = None
    channels: int | None = None
    loudness: str = Loudness.PROGRAMME
    evaluators: int | None = None
    trials: int | None = None


def make_own_test(*, chosen: OwnTest, archive: BinaryIO, file_name: str, by: Any, **fields: Any) -> Study:
    """Make a test of the recordings in an archive, design it and start making its stimuli.

    Args:
        fields: of `Study`, besides those of `chosen`.

    Raises:
        ProblemsError: with every reason for which the archive, or what is chosen, cannot be used.
        ValidationError: the name or the title is taken.
    """
    with _unpacking_folder() as folder:
        path, unpacked = folder / "archive", folder / "unpacked"
        with path.open("wb") as file:
            shutil.copyfileobj(archive, file, 1 << 20)
        unpacked.mkdir()
        found = read_recordings(path, file_name, unpacked)
        preset = load_preset(chosen.preset)
        if problems := list(_find_unknown(chosen, found.conditions)):
            raise ProblemsError(problems)
        with transaction.atomic():
            study = create_study(
                edition=None,
                by=by,
                name=chosen.name,
                title=chosen.title,
                recordings={"archive": file_name[:200], "original": chosen.original, "warnings": list(found.warnings)},
                questions=preset.questions,
                **{**preset.study, **_plan(chosen, found), **fields},
            )
            _write_rows(study, chosen, found, unpacked)
            audit.record("study.recordings_added", study, actor=by, file=file_name[:200], files=len(found.recordings))
    if start_design(study, by) is None:
        prepare_study(Study.objects.get(pk=study.pk), by)
    return study


# No practice or control trials: they would repeat recordings that are scored.
ALONE = {"originals_per_evaluator": 0, "practice_trials": 0, "gold_trials": 0, "bridge_trials": 0}


def _find_unknown(chosen: OwnTest, conditions: Collection[str]) -> Iterator[str]:
    unknown = sorted({*chosen.references, *filter(None, [chosen.original])} - set(conditions))
    if unknown:
        yield f"There is no condition {name_some(unknown)} in the archive; there are: {', '.join(conditions)}."
    if chosen.original in chosen.references:
        yield f"{chosen.original} cannot be the original and a reference. Choose one of the two."


def _plan(chosen: OwnTest, found: FoundRecordings) -> dict[str, Any]:
    """Return the fields of a study that follow from the recordings where nobody chose them."""
    rates = Counter(one.rate_hz for one in found.recordings)
    usual = rates.most_common(1)[0][0]
    rate = chosen.rate_hz or next((one for one in RATES_HZ if one >= usual), RATES_HZ[-1])
    channels = chosen.channels or max(one.channels for one in found.recordings)
    evaluators, trials = choose_numbers(len(found.conditions), len(found.common_items))
    sound = {"rate_hz": rate, "channels": channels, "loudness": chosen.loudness}
    numbers = {"evaluators": chosen.evaluators or evaluators, "trials_per_evaluator": chosen.trials or trials}
    return ALONE | sound | numbers


def choose_numbers(conditions: int, items: int) -> tuple[int, int]:
    """Return evaluators and trials of each: all recordings where they are few, else as many of each condition.

    >>> choose_numbers(3, 20), choose_numbers(4, 100)
    ((24, 60), (80, 60))
    """
    stimuli = conditions * items
    trials = stimuli if stimuli <= USUAL_TRIALS else max(USUAL_TRIALS - USUAL_TRIALS % conditions, 1)
    wanted = ceil(RATINGS_OF_EACH * stimuli / trials)
    return min(MOST_EVALUATORS, max(FEWEST_EVALUATORS, wanted)), trials


def _write_rows(study: Study, chosen: OwnTest, found: FoundRecordings, folder: Path) -> None:
    """Write conditions, items and stimuli, and keep the recordings under the names of their content."""
    conditions = {
        name: Condition(study=study, code=code, kind=kind)
        for name in found.conditions
        for code, kind in [_condition(name, chosen)]
    }
    Condition.objects.bulk_create(conditions.values())
    names = sorted({one.item for one in found.recordings})
    told = found.items
    items = {
        name: Item(
            study=study,
            name=name,
            speaker=told[name].speaker if name in told else "",
            sex=told[name].sex if name in told else "",
            language=told[name].language if name in told else "",
            transcript=told[name].text if name in told else "",
        )
        for name in names
    }
    Item.objects.bulk_create(items.values())
    stimuli = []
    for one in sorted(found.recordings, key=lambda one: draw_lot(study, one.condition, one.item)):
        key = content_key(one.sha256, PurePosixPath(one.path).suffix.lower())
        adopt_file(folder / one.path, key)
        place: Mapping[str, Any] = {"condition": conditions[one.condition], "item": items[one.item]}
        stimuli.append(Stimulus(study=study, **place, source=key, upload=key, duration_s=one.seconds))
    Stimulus.objects.bulk_create(stimuli)


def _condition(name: str, chosen: OwnTest) -> tuple[str, str]:
    if name == chosen.original:
        return "", Kind.ORIGINAL
    return name, Kind.REFERENCE if name in chosen.references else Kind.FOLDER


@contextmanager
def _unpacking_folder() -> Iterator[Path]:
    """Yield a folder that is gone afterwards, on the disk of the portal's files, so that these need not be copied."""
    place = unpacking_folder()
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place) as folder:
        yield Path(folder)
