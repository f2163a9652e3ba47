"""Which voice each utterance of a source gets, and the arguments that say from which targets.

Voices are planned from a seed, taken from a file of voices, or those of target speakers. Those of a split are planned
together over everybody who enrols or is tried in it, so that the directories of a challenge belong in one call: another
population may give other voices. A pool of targets is read as a source is (a folder, a Kaldi data directory, or a
folder of those); genders stand in a file ``spk2gender`` of the folder or data directory, for pool and input alike.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from anonymization.cli.sources import FileToAnonymize, Reading, SourceDataSet, SpeechSource, read_source
from anonymization.methods.audio_conversion import convert_file
from anonymization.methods.contract import (
    Anonymizer,
    MethodError,
    Options,
    Target,
    TargetPool,
    plans_voices,
    takes_targets,
    validate_voice,
)
from anonymization.methods.voices.assignment import Voices, assign_voices
from anonymization.methods.voices.files import TargetRow, read_voices
from anonymization.methods.voices.pseudo_speakers import Assignment, Level, Place, usual_level
from anonymization.methods.voices.targets import DEFAULT_SELECTION, SourceUtterance, find_selection, plan_targets
from common.arrays import Samples
from common.errors import CommandError
from common.hashes import compute_sha256
from common.problems import has_errors
from evaluation.formats.kaldi import read_spk2gender
from speech.audio.files import AudioError

GENDERS = "spk2gender"


def voices_from_file(method: Anonymizer, utterances: Sequence[FileToAnonymize], path: Path) -> Voices:
    """Return the voices that a file states, for every utterance of the source.

    Raises:
        MethodError: a file of voices with problems; a voice that the method cannot take.
        CommandError: an utterance that has none in the file, or a speaker that has two at speaker level.
    """
    rows = read_voices(path, str(path)).require()
    _refuse_second_voices(rows, path)
    voices = Voices(rows)
    for row in voices.assignments:
        try:
            validate_voice(method, row.voice)
        except MethodError as error:
            raise MethodError(f"{path}, the voice of {row.utterance or row.speaker}: {error}") from error
    for each in utterances:
        try:
            voices.of(each.place)
        except KeyError:
            raise CommandError(
                f"{path}: expected a voice for the speaker {each.speaker} ({each.role}, {each.split}), found none. "
                f"Make the file from the same folder, role and split."
            ) from None
    return voices


def _refuse_second_voices(rows: Iterable[Assignment], path: Path) -> None:
    first: dict[Place, Assignment] = {}
    for row in rows:
        earlier = first.setdefault(row.place, row)
        if earlier.voice != row.voice:
            raise CommandError(
                f"{path}, line {row.line}: expected one voice for {row.speaker} at level {row.level} ({row.role}, "
                f"{row.split}), found another one than in line {earlier.line}. Keep the line that is meant, or set "
                f"the level to utterance."
            )


# Voices of targets -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Targeting:
    """What was said about targets, or about genders alone where a method plans its voices and has no pool.

    genders: of the speakers of the input by name, from a file that was named.
    """

    selection: str
    pool: TargetPool | None
    genders: dict[str, str]


def read_targeting(
    method: Anonymizer, targets: Path | None, selection: str | None, genders: Path | None
) -> Targeting | None:
    """Return what was said, the pool read; None for methods without targets.

    Args:
        targets: folder of the pool. selection: who gets which. genders: file of those of the input's speakers.

    Raises:
        CommandError: targets that the method does not take, or none where it needs some.
        MethodError: an unknown selection.
    """
    if plans_voices(method) and not targets and not selection:
        return Targeting("", None, _read_genders(genders) if genders else {})
    if not takes_targets(method):
        for name, value in (("targets", targets), ("target-selection", selection), ("genders", genders)):
            if value:
                raise CommandError(
                    f"--{name}: expected a method whose voices are those of targets; found {method.name}, which draws "
                    f"its voices."
                )
        return None
    if targets is None:
        raise CommandError(f"--targets: expected a folder of speech of target speakers for {method.name}; found none.")
    find_selection(selection or DEFAULT_SELECTION)
    return Targeting(selection or DEFAULT_SELECTION, read_pool(targets), _read_genders(genders) if genders else {})


def read_pool(folder: Path) -> TargetPool:
    """Return the target speakers of a folder, each with its recordings in the order of their names.

    Raises:
        CommandError: no such folder, or nobody in it.
        MethodError: a file of genders with problems.
    """
    source = read_source(folder, Reading(role="trial"))
    genders = _find_genders(source)
    recordings: dict[str, list[partial[tuple[Samples, int]]]] = defaultdict(list)
    for each in sorted(source.utterances, key=lambda each: each.name):
        recordings[each.speaker].append(partial(_read_recording, each.audio))
    return TargetPool(Target(name, genders.get(name, ""), tuple(found)) for name, found in recordings.items())


def prepare_method(method: Anonymizer, folder: Path | None) -> Anonymizer:
    """Return the method with the targets of a folder, where it takes some; for worker processes, too."""
    return method.prepare(read_pool(folder)) if takes_targets(method) and folder is not None else method


def plan_source_voices(
    method: Anonymizer,
    source: SpeechSource,
    targeting: Targeting | None,
    *,
    seed: int,
    level: Level | None,
    options: Options,
) -> Voices:
    """Return the voices of all utterances of a source, drawn or those of targets.

    Raises:
        MethodError: what `plan_targets` or `assign_voices` refuses.
    """
    genders = (targeting.genders or _find_genders(source)) if targeting else {}
    sources = _list_sources(source.utterances, genders, level)
    if targeting is None or targeting.pool is None:
        return assign_voices(method, sources, seed=seed, options=options)
    return Voices(tuple(plan_targets(sources, targeting.pool.targets, targeting.selection, seed=seed)))


def _list_sources(
    utterances: Iterable[FileToAnonymize], genders: Mapping[str, str], level: Level | None
) -> list[SourceUtterance]:
    """List what gets a voice of its own: speakers of a role and split, or utterances, each with its recordings.

    Args:
        level: None for what is usual: training data at utterance level, all else at speaker level.
    """
    members: dict[Place, list[FileToAnonymize]] = defaultdict(list)
    for each in utterances:
        is_alone = (level or usual_level(each.role)) == "utterance"
        members[each.place if is_alone else (*each.place[:3], "")].append(each)
    return [
        SourceUtterance(
            own,
            speaker,
            genders.get(speaker, ""),
            role,
            split,
            "utterance" if own else "speaker",
            tuple(partial(_read_recording, each.audio) for each in sorted(rows, key=lambda each: each.name)),
        )
        for (role, split, speaker, own), rows in members.items()
    ]


def list_target_rows(
    utterances: Sequence[FileToAnonymize], data_sets: Sequence[SourceDataSet], voices: Voices
) -> Iterator[TargetRow]:
    """Yield the lines of a file of targets; data sets are named where there are several."""
    several = len(data_sets) > 1
    for each in utterances:
        yield each.data_set if several else "", each.name, voices.of(each.place).target


def describe_targets(targeting: Targeting | None) -> dict[str, str]:
    """Return what decides the targets of a run, for its record; nothing for methods without targets.

    targets: SHA-256 of names, genders and recordings of the targets; genders: that of a file that was named.
    """
    if targeting is None:
        return {}
    genders = "\0".join(f"{name}\0{gender}" for name, gender in sorted(targeting.genders.items()))
    told = hashlib.sha256(genders.encode()).hexdigest() if genders else ""
    if targeting.pool is None:
        return {"genders": told}
    digest = hashlib.sha256()
    for target in targeting.pool.targets:
        digest.update(f"{target.name}\0{target.gender}\0".encode("utf-8", "surrogateescape"))
        for recording in target.recordings:
            assert isinstance(recording, partial)  # noqa: S101 - as `read_pool` makes them
            digest.update(compute_sha256(recording.args[0]).encode())
    return {
        "targets": digest.hexdigest(),
        "target_selection": targeting.selection,
        "genders": told,
    }


def _read_recording(path: Path) -> tuple[Samples, int]:
    try:
        conformed = convert_file(path)
    except AudioError as error:
        raise MethodError(str(error)) from error
    return conformed.samples, conformed.rate_hz


def _find_genders(source: SpeechSource) -> dict[str, str]:
    """Of all data sets of a source that state them."""
    found: dict[str, str] = {}
    for data_set in source.data_sets:
        if (path := data_set.folder / GENDERS).is_file():
            found |= _read_genders(path)
    return found


def _read_genders(path: Path) -> dict[str, str]:
    parsed = read_spk2gender(path, str(path))
    if has_errors(parsed.problems):
        raise MethodError("\n".join(problem.sentence() for problem in parsed.problems))
    return dict(parsed.content)
