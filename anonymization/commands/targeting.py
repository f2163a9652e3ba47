"""Methods whose voices are those of target speakers, on the command line: the pool, the selection, and who gets whom.

The pool is read as a source is (a folder, a Kaldi data directory, or a folder of those); genders stand in a file
``spk2gender`` of the folder or data directory, for the pool and for the input alike.
"""

from __future__ import annotations

import argparse
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from anonymization.commands.assigning import Voices, plan_source, voices_of
from anonymization.commands.records import file_sha256
from anonymization.commands.sources import DataSet, Reading, Source, Utterance, read_source
from anonymization.methods.checks import Assignment
from anonymization.methods.conforming import conform_file
from anonymization.methods.contract import Anonymizer, Samples, takes_targets
from anonymization.methods.errors import MethodError
from anonymization.methods.pseudo_speakers import Level, usual_level
from anonymization.methods.target_files import Row
from anonymization.methods.target_pool import Target, TargetPool, target_voice
from anonymization.methods.target_selection import DEFAULT_SELECTION, SELECTIONS, Candidate, plan_targets
from anonymization.methods.target_selection import Source as Planned
from evaluation.commands.terminal import CommandError
from evaluation.formats.kaldi import read_spk2gender
from evaluation.formats.problems import has_errors

GENDERS = "spk2gender"


@dataclass(frozen=True)
class Targeting:
    """What was said about targets. genders: of the speakers of the input by name, from a file that was named."""

    folder: Path
    selection: str
    pool: TargetPool
    genders: dict[str, str]


def add_targets(parser: argparse._ActionsContainer) -> None:
    """The arguments about targets."""
    parser.add_argument(
        "--targets", type=Path, metavar="FOLDER", help="speech of the target speakers, for methods that need some"
    )
    parser.add_argument(
        "--target-selection", choices=tuple(SELECTIONS), help=f"who gets which target (default {DEFAULT_SELECTION})"
    )
    parser.add_argument(
        "--genders", type=Path, metavar="FILE", help=f"{GENDERS} of the input (default: the file of that name in it)"
    )


def targeting_of(method: Anonymizer, options: argparse.Namespace) -> Targeting | None:
    """What was said, the pool read; None for methods without targets.

    Raises:
        CommandError: targets that the method does not take, or none where it needs some.
    """
    if not takes_targets(method):
        for said in ("targets", "target_selection", "genders"):
            if getattr(options, said):
                raise CommandError(
                    f"--{said.replace('_', '-')}: expected a method whose voices are those of targets, such as "
                    f"knn-world; found {method.name}, which draws its voices."
                )
        return None
    if options.targets is None:
        raise CommandError(f"--targets: expected a folder of speech of target speakers for {method.name}; found none.")
    if getattr(options, "voices", None):
        raise CommandError(f"--voices: expected drawn voices; {method.name} gives those of --targets.")
    genders = _genders(options.genders) if options.genders else {}
    return Targeting(
        options.targets, options.target_selection or DEFAULT_SELECTION, read_pool(options.targets), genders
    )


def read_pool(folder: Path) -> TargetPool:
    """The target speakers of a folder, each with its recordings in the order of their names.

    Raises:
        CommandError: no such folder, or nobody in it.
        MethodError: a file of genders with faults.
    """
    source = read_source(folder, Reading(role="trial"))
    genders = _genders_of(source)
    recordings: dict[str, list[Utterance]] = defaultdict(list)
    for each in source.utterances:
        recordings[each.speaker].append(each)
    return TargetPool(
        Target(name, genders.get(name, ""), tuple(partial(_read, each.audio) for each in _by_name(found)))
        for name, found in recordings.items()
    )


def prepared(method: Anonymizer, folder: Path | None) -> Anonymizer:
    """The method with the targets of a folder, where it takes some; for worker processes, too."""
    return method.prepare(read_pool(folder)) if takes_targets(method) and folder is not None else method


def plan_voices_of(
    method: Anonymizer, source: Source, targeting: Targeting | None, *, seed: int, level: Level | None
) -> Voices:
    """The voices of all utterances of a source, drawn or those of targets.

    Raises:
        MethodError: what `plan_targets` or `plan_source` refuses.
    """
    if targeting is None:
        return plan_source(method, source.utterances, seed=seed, level=level)
    genders = targeting.genders or _genders_of(source)
    planned = [
        Planned(
            each.name, each.speaker, genders.get(each.speaker, ""), each.role, each.split,
            level or usual_level(each.role),
        )
        for each in source.utterances
    ]  # fmt: skip
    candidates = [Candidate(target.name, target.gender) for target in targeting.pool.targets]
    assigned = plan_targets(planned, candidates, targeting.selection, seed=seed)
    rows = {
        (each.role, each.split, each.speaker, each.utterance if each.level == "utterance" else ""): each.target
        for each in assigned
    }
    return voices_of(
        (
            Assignment(role, split, "utterance" if utterance else "speaker", speaker, utterance, target_voice(target))
            for (role, split, speaker, utterance), target in rows.items()
        ),
        0.0,
    )


def rows_of_targets(utterances: Sequence[Utterance], data_sets: Sequence[DataSet], voices: Voices) -> Iterator[Row]:
    """The lines of a file of targets; data sets are named where there are several."""
    several = len(data_sets) > 1
    for each in utterances:
        yield each.data_set if several else "", each.name, voices.of(each).target


def recorded(targeting: Targeting | None) -> dict[str, str]:
    """What decides the targets of a run, for its record."""
    if targeting is None:
        return {}
    digest = hashlib.sha256()
    for target in targeting.pool.targets:
        digest.update(f"{target.name}\0{target.gender}\0".encode("utf-8", "surrogateescape"))
        for recording in target.recordings:
            assert isinstance(recording, partial)  # noqa: S101 - as `read_pool` makes them
            digest.update(file_sha256(recording.args[0]).encode())
    genders = "\0".join(f"{name}\0{gender}" for name, gender in sorted(targeting.genders.items()))
    return {
        "targets": digest.hexdigest(),
        "target_selection": targeting.selection,
        "genders": hashlib.sha256(genders.encode()).hexdigest() if genders else "",
    }


def _read(path: Path) -> tuple[Samples, int]:
    conformed = conform_file(path)
    return conformed.samples, conformed.rate_hz


def _by_name(found: Iterable[Utterance]) -> list[Utterance]:
    return sorted(found, key=lambda each: each.name)


def _genders_of(source: Source) -> dict[str, str]:
    """Of all data sets of a source that state them."""
    found: dict[str, str] = {}
    for data_set in source.data_sets:
        if (path := data_set.folder / GENDERS).is_file():
            found |= _genders(path)
    return found


def _genders(path: Path) -> dict[str, str]:
    parsed = read_spk2gender(path, str(path))
    if has_errors(parsed.problems):
        raise MethodError("\n".join(problem.sentence() for problem in parsed.problems))
    return dict(parsed.content)
