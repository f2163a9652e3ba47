"""The speech that a recogniser learns from: its utterances, and the pieces of them that an epoch goes through.

**Utterances** (`read_corpus`) have a source speaker and, where known, a target. They are read when they are needed; a
folder of speakers or a CSV file names them. What is wrong with a corpus is said at once, before anything is trained.

**Pieces** (`cut`) lie on a grid; some of them are held out. A piece is what the features are computed of; a row is one
example of an epoch and points to its piece. On a grid or with windows within a piece each row has a piece of its own;
with windows anywhere in the utterance the piece is the utterance, with as many rows as it has full lengths.

Conventions: samples are int16, mono, 16 kHz, shape (n,); genders ``f``, ``m`` or empty; labels are positions in
`sources` and `targets`, −1 for an unknown target.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from common.arrays import Flags, Samples
from common.csv_rows import read_csv
from common.errors import InputError
from common.file_names import find_spelling, plain_name
from common.folders import audio_files, list_folders
from common.problems import find_first_error, has_errors
from common.progress import Count, ignore_progress
from common.text_files import read_text_file
from common.wording import name_some
from evaluation.attackers.training.recipe import TrainingRecipe
from evaluation.formats.kaldi import read_wav_scp
from speech.audio.files import AudioError, read_pcm16

Read = Callable[[], tuple[Samples, int]]

RATE_HZ = 16_000
_NAMED = 3  # utterances that a sentence names, of many with one problem
_GENDERS = {"f": "f", "female": "f", "m": "m", "male": "m", "": ""}
_COLUMNS = {"speaker": "source", "target_id": "target", "utterance": "utterance_id", "file": "path"}


@dataclass(frozen=True)
class TrainingUtterance:
    """One anonymised recording.

    Attributes:
        identifier: unique within the corpus.
        source: who spoke it.
        read: gives its samples, int16, shape (n,), and their rate in Hz; raises `InputError` or `AudioError`.
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

    @property
    def recording(self) -> str:
        """Return the original that it goes back to."""
        return self.original or self.identifier


def read_corpus(path: Path, targets: Path | None = None) -> list[TrainingUtterance]:
    """Return the utterances of a folder ``SPEAKER/**/UTTERANCE.flac`` or of a CSV file.

    The CSV has the columns ``path`` (relative to its folder) and ``source`` (or ``speaker``), and may have
    ``utterance_id``, ``target``, ``gender`` and ``original``.

    Args:
        path: folder or CSV file.
        targets: CSV file with the columns ``utterance_id`` and ``target``; takes the place of targets in `path`.

    Raises:
        InputError: nothing there, speech outside the folders of speakers, no column of such a name, no
            utterance; or a targets file that names no utterance of the corpus.
    """
    found = _read_rows(path) if path.is_file() else _read_folder(path)
    if not found:
        raise InputError(f"{path}: expected utterances in WAV or FLAC files, found none. Name another folder.")
    return found if targets is None else _with_targets(found, targets)


def require_sound(utterances: Sequence[TrainingUtterance], *, targets: bool) -> None:
    """Refuse a corpus that nothing can be learned from, before any of it is read.

    Args:
        targets: whether a target classifier will be trained.

    Raises:
        InputError: fewer than two utterances or sources, names that occur twice, genders that are none, targets
            that are unknown or all the same; a sentence for each problem.
    """
    problems = []
    if len(utterances) < 2:
        problems.append(f"Expected at least 2 utterances to train on, found {len(utterances)}.")
    sources = {one.source for one in utterances}
    if len(utterances) >= 2 and len(sources) < 2:
        problems.append(
            f"Expected at least 2 source speakers, found {len(sources)} in {len(utterances)} utterances. "
            "Add speech of others."
        )
    twice = [name for name, count in Counter(one.identifier for one in utterances).items() if count > 1]
    if twice:
        problems.append(
            f"Expected each utterance once, found {name_some(twice)} more than once. Give each a name of its own."
        )
    odd = sorted({one.gender for one in utterances} - {"f", "m", ""})
    if odd:
        problems.append(f"Expected the genders f, m or none, found {name_some(odd)}.")
    problems += _target_problems(utterances) if targets else []
    if problems:
        raise InputError(" ".join(problems))


def _target_problems(utterances: Sequence[TrainingUtterance]) -> list[str]:
    without = [one.identifier for one in utterances if not one.target]
    if without:
        return [
            f"Expected the target of every utterance for a target classifier, found {len(without)} of "
            f"{len(utterances)} without, such as {without[0]}. Add the targets, or train without a target classifier."
        ]
    named = {one.target for one in utterances}
    if utterances and len(named) < 2:
        return [f"Expected at least 2 different targets, found only {named.pop()}. Train without a target classifier."]
    return []


def _read_folder(folder: Path) -> list[TrainingUtterance]:
    if not folder.is_dir():
        raise InputError(f"{folder}: expected a folder of speakers or a CSV file, found neither.")
    for listing in (place / "wav.scp" for place in (folder, *list_folders(folder))):
        problems = read_wav_scp(listing, str(listing)).problems if listing.is_file() else ()
        if has_errors(problems):  # commands, segments: the files that lie there are not its utterances
            raise InputError(find_first_error(problems).sentence())
    found, loose = [], []
    for file in audio_files(folder):
        place = Path(plain_name(file))
        if len(place.parts) == 1:
            loose.append(file)
        else:
            read = partial(read_audio, folder / file)
            found.append(TrainingUtterance(str(place.with_suffix("")), place.parts[0], read))
    if loose:
        raise InputError(
            f"{folder}: expected the speech of each speaker in a folder of that name, found {name_some(loose)} outside "
            "any. Move it, or name the speakers in a CSV file."
        )
    # Names of files alone where they are unique, as targets files and score files call them.
    short = [Path(one.identifier).name for one in found]
    if len(set(short)) == len(short):
        return [replace(one, identifier=name) for one, name in zip(found, short, strict=True)]
    return found


def _read_rows(path: Path) -> list[TrainingUtterance]:
    found, problems = [], []
    for number, row in _csv_rows(path, ("path", "source")):
        gender = row.get("gender", "").lower()
        if not row["path"] or not row["source"] or gender not in _GENDERS:
            problems.append(
                f"{path}, line {number}: expected a path, a source and a gender of f, m or none, found "
                f"“{row['path']}”, “{row['source']}” and “{gender}”."
            )
            continue
        file = find_spelling(path.parent / row["path"])
        utterance = TrainingUtterance(
            row.get("utterance_id") or plain_name(file.stem),
            row["source"],
            partial(read_audio, file),
            target=row.get("target") or None,
            gender=_GENDERS[gender],
            original=row.get("original", ""),
        )
        found.append(utterance)
    if problems:
        more = f" And {len(problems) - _NAMED} more." if len(problems) > _NAMED else ""
        raise InputError(" ".join(problems[:_NAMED]) + more)
    return found


def _with_targets(utterances: Iterable[TrainingUtterance], path: Path) -> list[TrainingUtterance]:
    targets = {row["utterance_id"]: row["target"] for _, row in _csv_rows(path, ("utterance_id", "target"))}
    result = [replace(one, target=targets.get(one.identifier) or None) for one in utterances]
    if not any(one.target for one in result):
        raise InputError(f"{path}: expected targets of utterances in the corpus, found none of their names.")
    return result


def _csv_rows(path: Path, needed: tuple[str, ...]) -> list[tuple[int, Mapping[str, str]]]:
    """Line number and cells by the name of their column, surrounding spaces taken off."""
    text, problems = read_text_file(path)
    if not text:
        raise InputError(" ".join(problem.sentence() for problem in problems) or f"{path} is empty.")
    try:
        (_, first), *others = read_csv(text, lambda name: name.lower() in {*needed, *_COLUMNS}).rows()
    except InputError as error:
        raise InputError(f"{path}, line {error.line}: expected a table (CSV), found “{error}”.") from None
    header = [name.strip().lower() for name in first]
    columns = [_COLUMNS.get(name, name) if _COLUMNS.get(name, name) not in header else name for name in header]
    missing = [name for name in needed if name not in columns]
    if missing:
        raise InputError(
            f"{path}, line 1: expected the columns {', '.join(needed)}, found {', '.join(header) or 'none'}. "
            "Name the columns in the first line."
        )
    rows: list[tuple[int, Mapping[str, str]]] = []
    for line, cells in others:
        padded = [cell.strip() for cell in cells] + [""] * (len(columns) - len(cells))
        rows.append((line, dict(zip(columns, padded, strict=False))))
    return rows


def read_audio(path: Path) -> tuple[Samples, int]:
    """Return the samples of a WAV or FLAC file, as `TrainingUtterance.read` gives them."""
    try:
        return read_pcm16(path)
    except AudioError as error:
        raise InputError(f"{path}: {error}") from error


Indices = npt.NDArray[np.int64]
TENTH = 10
_FULL_SCALE = 32768


@dataclass(frozen=True, eq=False)
class Segments:
    """The examples of a training.

    Attributes:
        sources, targets: names, in ascending order; no targets where they are unknown.
        piece_utterance: shape (pieces,), which utterance a piece is cut from.
        piece_start, piece_length: shape (pieces,), in samples.
        row_piece: shape (rows,), the piece of each row.
        row_start: shape (rows,), where the row's own place on the grid begins within its piece, in samples.
        source, target: shape (rows,), labels.
        gender: shape (rows,), ``f``, ``m`` or empty.
        held_out: shape (rows,), whether the row is for validation.
        fingerprint: of names, labels and samples; another corpus has another one.
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    piece_utterance: Indices
    piece_start: Indices
    piece_length: Indices
    row_piece: Indices
    row_start: Indices
    source: Indices
    target: Indices
    gender: npt.NDArray[np.str_]
    held_out: Flags
    fingerprint: str

    @property
    def training_rows(self) -> Indices:
        """Return positions of the rows to learn from."""
        return np.flatnonzero(~self.held_out)

    @property
    def validation_rows(self) -> Indices:
        """Return positions of the rows that are held out."""
        return np.flatnonzero(self.held_out)


def read_checked(utterance: TrainingUtterance) -> Samples:
    """Return the samples of an utterance, int16, shape (n,).

    Raises:
        InputError: it cannot be read, or has another rate than 16 kHz.
    """
    samples, rate_hz = utterance.read()
    if rate_hz != RATE_HZ or samples.ndim != 1:
        raise InputError(
            f"{utterance.identifier}: expected one channel at {RATE_HZ} Hz, found shape {samples.shape} at {rate_hz} "
            "Hz. Resample it."
        )
    return samples


def cut(
    utterances: Sequence[TrainingUtterance],
    recipe: TrainingRecipe,
    seed: int,
    progress: Count = ignore_progress,
) -> Segments:
    """Cut every utterance and hold some out, as the recipe says.

    Args:
        utterances: as `require_sound` passes them.
        seed: of the utterances that are held out by chance.
        progress: told of each utterance read.

    Raises:
        InputError: utterances that cannot be read, or fewer than two sources with anything to learn from.
    """
    grid: list[tuple[int, int, int]] = []  # utterance, start, length of each full or last piece
    lengths, problems = [], []
    sound = hashlib.sha256()
    for number, utterance in enumerate(utterances):
        progress(number, len(utterances))
        try:
            samples = read_checked(utterance)
        except InputError as error:
            problems.append(str(error))
            continue
        lengths.append(samples.size)
        sound.update(samples.tobytes())
        grid += [(number, start, length) for start, length in _cut_pieces(samples, recipe)]
    progress(len(utterances), len(utterances))
    if problems:
        more = f" And {len(problems) - 3} more utterances." if len(problems) > 3 else ""
        raise InputError(" ".join(problems[:3]) + more)
    table = np.array(grid, dtype=np.int64).reshape(-1, 3)
    held_out = _held_out(utterances, table, recipe, np.random.default_rng([seed, 0]))
    segments = _assembled(utterances, np.array(lengths, dtype=np.int64), table, held_out, recipe, sound.digest())
    _require_two_sources(segments, recipe)
    return segments


def _cut_pieces(samples: Samples, recipe: TrainingRecipe) -> list[tuple[int, int]]:
    step, shortest = round(recipe.segment_s * RATE_HZ), round(recipe.shortest_s * RATE_HZ)
    starts = range(0, samples.size, step)
    pieces = [(start, min(step, samples.size - start)) for start in starts]
    pieces = [(start, length) for start, length in pieces if length >= shortest]
    if recipe.quietest_amplitude:
        least = recipe.quietest_amplitude * _FULL_SCALE
        pieces = [one for one in pieces if np.abs(samples[one[0] : sum(one)].astype(np.float64)).mean() >= least]
    return pieces


def _held_out(
    utterances: Sequence[TrainingUtterance], table: Indices, recipe: TrainingRecipe, random: np.random.Generator
) -> Flags:
    """Which pieces of the grid are for validation, shape (pieces,)."""
    owners = table[:, 0]
    if recipe.validation == "last segment":
        places = [(utterances[owner].recording, int(start)) for owner, start in table[:, :2]]
        of_source: dict[str, dict[tuple[str, int], None]] = {}
        for owner, place in zip(owners, places, strict=True):
            of_source.setdefault(utterances[owner].source, {})[place] = None
        # A source with one piece keeps it: nothing could be learned of that source otherwise.
        last = {source: _last_place(list(known)) for source, known in of_source.items() if len(known) > 1}
        chosen = [last.get(utterances[owner].source) == place for owner, place in zip(owners, places, strict=True)]
        return np.array(chosen, dtype=np.bool_)
    # Recordings are drawn, each with all its conversions: those left in training would tell of those held out.
    groups: dict[str, dict[str, list[int]]] = {}
    for number in sorted(set(owners.tolist())):
        one = utterances[number]
        group = one.source if recipe.validation == "tenth of each speaker" else ""
        groups.setdefault(group, {}).setdefault(one.recording, []).append(number)
    out: list[int] = []
    for recordings in groups.values():
        conversions = list(recordings.values())
        for place in random.permutation(len(conversions))[: len(conversions) // TENTH]:
            out += conversions[place]
    return np.isin(owners, out)


def _last_place(places: Sequence[tuple[str, int]]) -> tuple[str, int]:
    """Return the last piece of the recording that comes last."""
    recording = places[-1][0]
    return recording, max(start for name, start in places if name == recording)


def _assembled(
    utterances: Sequence[TrainingUtterance],
    lengths: Indices,
    table: Indices,
    held_out: Flags,
    recipe: TrainingRecipe,
    sound: bytes,
) -> Segments:
    owners = table[:, 0]
    if recipe.crop == "utterance":
        heard = np.unique(owners)
        pieces = np.stack([heard, np.zeros_like(heard), lengths[heard]], axis=1)
        row_piece = np.searchsorted(heard, owners)
    else:
        pieces, row_piece = table, np.arange(len(table))
    sources = tuple(sorted({utterances[owner].source for owner in owners}))
    known = all(one.target for one in utterances)
    targets = tuple(sorted({utterances[owner].target or "" for owner in owners})) if known else ()
    named = [utterances[owner] for owner in owners]
    place = {name: label for label, name in enumerate(sources)}
    target_place = {name: label for label, name in enumerate(targets)}
    digest = hashlib.sha256(sound + table.tobytes() + lengths.tobytes() + held_out.tobytes())
    for one in utterances:
        digest.update(f"{one.identifier}\0{one.source}\0{one.target}\0{one.recording}\n".encode())
    return Segments(
        sources=sources,
        targets=targets,
        piece_utterance=pieces[:, 0],
        piece_start=pieces[:, 1],
        piece_length=pieces[:, 2],
        row_piece=row_piece.astype(np.int64),
        row_start=table[:, 1] if recipe.crop == "utterance" else np.zeros(len(table), dtype=np.int64),
        source=np.array([place[one.source] for one in named], dtype=np.int64),
        target=np.array([target_place.get(one.target or "", -1) for one in named], dtype=np.int64),
        gender=np.array([one.gender for one in named], dtype=np.str_),
        held_out=held_out,
        fingerprint=digest.hexdigest(),
    )


def _require_two_sources(segments: Segments, recipe: TrainingRecipe) -> None:
    rows = segments.training_rows
    found = len(np.unique(segments.source[rows]))
    if found >= 2:
        return
    held = int(segments.held_out.sum())
    raise InputError(
        f"Expected at least 2 source speakers with speech of {recipe.shortest_s:g} s or more to learn from, found "
        f"{found} in {rows.size} segments, {held} held out for validation. Add longer or more utterances, or choose "
        "another recipe."
    )
