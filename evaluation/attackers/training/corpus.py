"""The speech that a recogniser learns from: utterances with their source speaker and, where known, their target.

Utterances are read when they are needed; a folder of speakers or a CSV file names them. What is wrong with a corpus is
said at once, before anything is trained. Conventions: samples int16, mono, 16 kHz; genders ``f``, ``m`` or empty.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from evaluation.formats.text_files import read_text_file
from evaluation.metrics.errors import MetricInputError

Samples = npt.NDArray[np.int16]
Read = Callable[[], tuple[Samples, int]]

RATE_HZ = 16_000
ENDINGS = (".flac", ".wav")
_NAMED = 3  # utterances that a sentence names, of many with one fault
_GENDERS = {"f": "f", "female": "f", "m": "m", "male": "m", "": ""}
_COLUMNS = {"speaker": "source", "target_id": "target", "utterance": "utterance_id", "file": "path"}


@dataclass(frozen=True)
class TrainingUtterance:
    """One anonymised recording.

    Attributes:
        identifier: unique within the corpus.
        source: who spoke it.
        read: gives its samples, int16, shape (n,), and their rate in Hz; raises `MetricInputError` or `AudioError`.
        target: whose voice it was given; None where nobody knows.
        gender: of the source, ``f``, ``m`` or empty.
        original: the recording that it is a conversion of, so that all conversions of one are held out together; the
            utterance itself where empty.
    """

    identifier: str
    source: str
    read: Read
    target: str | None = None
    gender: str = ""
    original: str = ""

    @classmethod
    def of_samples(
        cls, identifier: str, source: str, samples: Samples, rate_hz: int = RATE_HZ, *, target: str | None = None,
        gender: str = "", original: str = "",
    ) -> TrainingUtterance:  # fmt: skip
        """An utterance whose samples, int16, shape (n,), are in memory."""
        return cls(identifier, source, lambda: (samples, rate_hz), target, gender, original)

    @classmethod
    def of_file(
        cls, identifier: str, source: str, path: Path, *, target: str | None = None, gender: str = "",
        original: str = "",
    ) -> TrainingUtterance:  # fmt: skip
        """An utterance that is read from a WAV or FLAC file when it is needed."""
        return cls(identifier, source, lambda: _read_audio(path), target, gender, original)

    @property
    def recording(self) -> str:
        """The original that it goes back to."""
        return self.original or self.identifier


def read_corpus(path: Path, targets: Path | None = None) -> list[TrainingUtterance]:
    """The utterances of a folder ``SPEAKER/**/UTTERANCE.flac`` or of a CSV file.

    The CSV has the columns ``path`` (relative to its folder) and ``source`` (or ``speaker``), and may have
    ``utterance_id``, ``target``, ``gender`` and ``original``.

    Args:
        path: folder or CSV file.
        targets: CSV file with the columns ``utterance_id`` and ``target``; takes the place of targets in `path`.

    Raises:
        MetricInputError: nothing there, speech outside the folders of speakers, no column of such a name, no
            utterance; or a targets file that names no utterance of the corpus.
    """
    found = _read_rows(path) if path.is_file() else _read_folder(path)
    if not found:
        raise MetricInputError(f"{path}: expected utterances in WAV or FLAC files, found none. Name another folder.")
    return found if targets is None else _with_targets(found, targets)


def require_sound(utterances: Sequence[TrainingUtterance], *, targets: bool) -> None:
    """Refuse a corpus that nothing can be learned from, before any of it is read.

    Args:
        targets: whether a target classifier will be trained.

    Raises:
        MetricInputError: fewer than two utterances or sources, names that occur twice, genders that are none, targets
            that are unknown or all the same; a sentence for each fault.
    """
    faults = []
    if len(utterances) < 2:
        faults.append(f"Expected at least 2 utterances to train on, found {len(utterances)}.")
    sources = {one.source for one in utterances}
    if len(utterances) >= 2 and len(sources) < 2:
        faults.append(
            f"Expected at least 2 source speakers to tell apart, found {len(sources)} in {len(utterances)} utterances. "
            "Add speech of others."
        )
    twice = [name for name, count in Counter(one.identifier for one in utterances).items() if count > 1]
    if twice:
        faults.append(
            f"Expected each utterance once, found {_some(twice)} more than once. Give each a name of its own."
        )
    odd = sorted({one.gender for one in utterances} - {"f", "m", ""})
    if odd:
        faults.append(f"Expected the genders f, m or none, found {_some(odd)}.")
    faults += _target_faults(utterances) if targets else []
    if faults:
        raise MetricInputError(" ".join(faults))


def _target_faults(utterances: Sequence[TrainingUtterance]) -> list[str]:
    without = [one.identifier for one in utterances if not one.target]
    if without:
        return [
            f"Expected the target of every utterance for a target classifier, found {len(without)} of "
            f"{len(utterances)} without, such as {without[0]}. Add the targets, or train without a target classifier."
        ]
    named = {one.target for one in utterances}
    if utterances and len(named) < 2:
        return [
            f"Expected at least 2 targets to tell apart, found only {named.pop()}. Train without a target classifier."
        ]
    return []


def _read_folder(folder: Path) -> list[TrainingUtterance]:
    if not folder.is_dir():
        raise MetricInputError(f"{folder}: expected a folder of speakers or a CSV file, found neither.")
    found, loose = [], []
    for path in sorted(folder.rglob("*")):
        place = path.relative_to(folder)
        if path.suffix.lower() not in ENDINGS or not path.is_file():
            continue
        if len(place.parts) == 1:
            loose.append(path.name)
        else:
            found.append(TrainingUtterance.of_file(str(place.with_suffix("")), place.parts[0], path))
    if loose:
        raise MetricInputError(
            f"{folder}: expected the speech of each speaker in a folder of that name, found {_some(loose)} outside "
            "any. Move it, or name the speakers in a CSV file."
        )
    # Names of files alone where they are unique, as targets files and score files call them.
    short = [Path(one.identifier).name for one in found]
    if len(set(short)) == len(short):
        return [replace(one, identifier=name) for one, name in zip(found, short, strict=True)]
    return found


def _read_rows(path: Path) -> list[TrainingUtterance]:
    found, faults = [], []
    for number, row in _csv_rows(path, ("path", "source")):
        gender = row.get("gender", "").lower()
        if not row["path"] or not row["source"] or gender not in _GENDERS:
            faults.append(
                f"{path}, line {number}: expected a path, a source and a gender of f, m or none, found "
                f"“{row['path']}”, “{row['source']}” and “{gender}”."
            )
            continue
        file = path.parent / row["path"]
        utterance = TrainingUtterance.of_file(
            row.get("utterance_id") or file.stem, row["source"], file, target=row.get("target") or None,
            gender=_GENDERS[gender], original=row.get("original", ""),
        )  # fmt: skip
        found.append(utterance)
    if faults:
        more = f" And {len(faults) - _NAMED} more." if len(faults) > _NAMED else ""
        raise MetricInputError(" ".join(faults[:_NAMED]) + more)
    return found


def _with_targets(utterances: Iterable[TrainingUtterance], path: Path) -> list[TrainingUtterance]:
    targets = {row["utterance_id"]: row["target"] for _, row in _csv_rows(path, ("utterance_id", "target"))}
    result = [replace(one, target=targets.get(one.identifier) or None) for one in utterances]
    if not any(one.target for one in result):
        raise MetricInputError(f"{path}: expected targets of utterances in the corpus, found none of their names.")
    return result


def _csv_rows(path: Path, needed: tuple[str, ...]) -> list[tuple[int, Mapping[str, str]]]:
    """Line number and cells by the name of their column, surrounding spaces taken off."""
    text, problems = read_text_file(path)
    if not text:
        raise MetricInputError(" ".join(problem.sentence() for problem in problems) or f"{path} is empty.")
    reader = csv.reader(text.splitlines())
    header = [name.strip().lower() for name in next(reader, [])]
    columns = [_COLUMNS.get(name, name) if _COLUMNS.get(name, name) not in header else name for name in header]
    missing = [name for name in needed if name not in columns]
    if missing:
        raise MetricInputError(
            f"{path}, line 1: expected the columns {', '.join(needed)}, found {', '.join(header) or 'none'}. "
            "Name the columns in the first line."
        )
    rows: list[tuple[int, Mapping[str, str]]] = []
    for cells in reader:
        if any(cells):
            padded = [cell.strip() for cell in cells] + [""] * (len(columns) - len(cells))
            rows.append((reader.line_num, dict(zip(columns, padded, strict=False))))
    return rows


def _read_audio(path: Path) -> tuple[Samples, int]:
    from evaluation.formats.audio import AudioError, read_pcm16

    try:
        return read_pcm16(path)
    except AudioError as error:
        raise MetricInputError(f"{path}: {error}") from error


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
