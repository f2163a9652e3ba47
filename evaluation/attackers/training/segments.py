"""What an epoch goes through: pieces of utterances on a grid, some of them held out.

A piece is what the features are computed of; a row is one example of an epoch and points to its piece. On a grid or
with windows within a piece each row has a piece of its own; with windows anywhere in the utterance the piece is the
utterance, with as many rows as it has full lengths. Conventions: samples at 16 kHz; labels are positions in `sources`
and `targets`, −1 for an unknown target.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluation.attackers.training.corpus import RATE_HZ, Samples, TrainingUtterance
from evaluation.attackers.training.recipe import TrainingRecipe
from evaluation.attackers.training.telling import Count, untold
from evaluation.metrics.errors import MetricInputError

Indices = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
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
        """Positions of the rows to learn from."""
        return np.flatnonzero(~self.held_out)

    @property
    def validation_rows(self) -> Indices:
        """Positions of the rows that are held out."""
        return np.flatnonzero(self.held_out)


def read_checked(utterance: TrainingUtterance) -> Samples:
    """The samples of an utterance, int16, shape (n,).

    Raises:
        MetricInputError: it cannot be read, or has another rate than 16 kHz.
    """
    samples, rate_hz = utterance.read()
    if rate_hz != RATE_HZ or samples.ndim != 1:
        raise MetricInputError(
            f"{utterance.identifier}: expected one channel at {RATE_HZ} Hz, found shape {samples.shape} at {rate_hz} "
            "Hz. Resample it."
        )
    return samples


def cut(
    utterances: Sequence[TrainingUtterance],
    recipe: TrainingRecipe,
    seed: int,
    progress: Count = untold,
) -> Segments:
    """Cut every utterance and hold some out, as the recipe says.

    Args:
        utterances: as `corpus.require_sound` passes them.
        seed: of the utterances that are held out by chance.
        progress: told of each utterance read.

    Raises:
        MetricInputError: utterances that cannot be read, or fewer than two sources with anything to learn from.
    """
    grid: list[tuple[int, int, int]] = []  # utterance, start, length of each full or last piece
    lengths, faults = [], []
    sound = hashlib.sha256()
    for number, utterance in enumerate(utterances):
        progress(number, len(utterances))
        try:
            samples = read_checked(utterance)
        except MetricInputError as error:
            faults.append(str(error))
            continue
        lengths.append(samples.size)
        sound.update(samples.tobytes())
        grid += [(number, start, length) for start, length in _pieces_of(samples, recipe)]
    progress(len(utterances), len(utterances))
    if faults:
        more = f" And {len(faults) - 3} more utterances." if len(faults) > 3 else ""
        raise MetricInputError(" ".join(faults[:3]) + more)
    table = np.array(grid, dtype=np.int64).reshape(-1, 3)
    held_out = _held_out(utterances, table, recipe, np.random.default_rng([seed, 0]))
    segments = _assembled(utterances, np.array(lengths, dtype=np.int64), table, held_out, recipe, sound.digest())
    _require_two_sources(segments, recipe)
    return segments


def _pieces_of(samples: Samples, recipe: TrainingRecipe) -> list[tuple[int, int]]:
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
    """The last piece of the recording that comes last."""
    recording = places[-1][0]
    return recording, max(start for name, start in places if name == recording)


def _assembled(
    utterances: Sequence[TrainingUtterance], lengths: Indices, table: Indices, held_out: Flags, recipe: TrainingRecipe,
    sound: bytes,
) -> Segments:  # fmt: skip
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
    raise MetricInputError(
        f"Expected at least 2 source speakers with speech of {recipe.shortest_s:g} s or more to learn from, found "
        f"{found} in {rows.size} pieces, {held} held out for validation. Add longer or more utterances, or choose "
        "another recipe."
    )
