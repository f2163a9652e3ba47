"""Which voice each utterance of a source gets: planned from a seed, or taken from a file of voices.

The voices of a split are planned together over everybody who enrols or is tried in it, so that the directories of a
challenge belong in one call: another population may give other voices.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from anonymization.commands.sources import Utterance
from anonymization.methods.checks import Assignment
from anonymization.methods.contract import Anonymizer, PseudoSpeaker, validate_voice
from anonymization.methods.errors import MethodError
from anonymization.methods.pseudo_speakers import (
    Level,
    VoicePlan,
    draw_pseudo_speaker,
    plan_voices,
    pseudo_speaker_key,
    usual_level,
)
from anonymization.methods.voice_files import read_voices
from evaluation.commands.terminal import CommandError

Place = tuple[str, str, str, str]  # role, split, speaker, utterance (empty at speaker level)


@dataclass(frozen=True, slots=True)
class Voices:
    """The voices of a source. distance: what any two speakers' differ by at least; 0 where nothing was promised."""

    assignments: tuple[Assignment, ...]
    distance: float
    by_place: Mapping[Place, PseudoSpeaker]

    def of(self, utterance: Utterance) -> PseudoSpeaker:
        """The voice of an utterance: its own, else its speaker's."""
        own = self.by_place.get((utterance.role, utterance.split, utterance.speaker, utterance.name))
        return own or self.by_place[utterance.role, utterance.split, utterance.speaker, ""]


def plan_source(method: Anonymizer, utterances: Sequence[Utterance], *, seed: int, level: Level | None) -> Voices:
    """Voices drawn from a seed.

    Args:
        level: None for what is usual: training data at utterance level, all else at speaker level.

    Raises:
        MethodError: training data at speaker level, which has no voices there.
    """
    plans = _plans(method, utterances, seed, level)
    assignments: dict[Place, Assignment] = {}
    for each in utterances:
        at_level = level or usual_level(each.role)
        place = (each.role, each.split, each.speaker, each.name if at_level == "utterance" else "")
        if place in assignments:
            continue
        if at_level == "speaker":
            voice = plans[each.role, each.split].voices[each.speaker]
        else:
            key = pseudo_speaker_key(
                seed=seed, role=each.role, split=each.split, speaker=each.speaker, utterance=each.name
            )
            voice = draw_pseudo_speaker(key, method.parameters)
        assignments[place] = Assignment(each.role, each.split, at_level, each.speaker, place[3], voice)
    return voices_of(assignments.values(), min((plan.distance for plan in plans.values()), default=0.0))


def _plans(
    method: Anonymizer, utterances: Sequence[Utterance], seed: int, level: Level | None
) -> dict[tuple[str, str], VoicePlan]:
    speakers: dict[str, set[str]] = defaultdict(set)
    for each in utterances:
        if each.role != "training":
            speakers[each.split].add(each.speaker)
    wanted = {(each.role, each.split) for each in utterances if (level or usual_level(each.role)) == "speaker"}
    if any(role == "training" for role, _ in wanted):
        raise MethodError("Training data is anonymised at utterance level; found --level speaker. Leave it out.")
    return {
        (role, split): plan_voices(method.parameters, seed=seed, role=role, split=split, speakers=speakers[split])
        for role, split in sorted(wanted)
    }


def voices_from_file(method: Anonymizer, utterances: Sequence[Utterance], path: Path) -> Voices:
    """The voices that a file states, for every utterance of the source.

    Raises:
        MethodError: a file of voices with faults; a voice that the method cannot take.
        CommandError: an utterance that has none in the file, or a speaker that has two at speaker level.
    """
    rows = read_voices(path, str(path)).require()
    _refuse_second_voices(rows, path)
    voices = voices_of(rows, 0.0)
    for row in voices.assignments:
        try:
            validate_voice(method, row.voice)
        except MethodError as error:
            raise MethodError(f"{path}, the voice of {row.utterance or row.speaker}: {error}") from error
    for each in utterances:
        try:
            voices.of(each)
        except KeyError:
            raise CommandError(
                f"{path}: expected a voice for the speaker {each.speaker} ({each.role}, {each.split}), found none. "
                f"Make the file from the same folder, role and split."
            ) from None
    return voices


def _refuse_second_voices(rows: Iterable[Assignment], path: Path) -> None:
    first: dict[Place, Assignment] = {}
    for row in rows:
        earlier = first.setdefault(_place(row), row)
        if earlier.voice != row.voice:
            raise CommandError(
                f"{path}, line {row.line}: expected one voice for {row.speaker} at level {row.level} ({row.role}, "
                f"{row.split}), found another one than in line {earlier.line}. Keep the line that is meant, or set "
                f"the level to utterance."
            )


def _place(row: Assignment) -> Place:
    return row.role, row.split, row.speaker, row.utterance if row.level == "utterance" else ""


def voices_of(assignments: Iterable[Assignment], distance: float) -> Voices:
    """Assignments as the voices of a source."""
    rows = tuple(assignments)
    return Voices(rows, distance, {_place(row): row.voice for row in rows})
