"""Whether the voices of a run or of a system fulfil the task: enrolment and trial voices differ, and so do speakers.

That is rule (d) of the task (2022 plan, sections 3.1 and 7), looked at by what is written of the voices, not by their
sound. Where voices are those of targets, two speakers can share one if the pool is smaller than they
are many, and all do where the selection says so: that is stated, and is a warning where it breaks the rule.
Conventions: problems are `Problem`s, not exceptions; a distance of voices is that of `pseudo_speakers.voice_distance`;
a voice is known by its parameters, mixture or vector, or by its key where it has none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from anonymization.methods.contract import Anonymizer, Parameter, plans_voices, takes_targets
from anonymization.methods.voices.pseudo_speakers import Assignment, Role, validate_parameters, voice_distance
from common.problems import Problem, ProblemList, Severity
from common.wording import name_some

# Distances through another rounding, such as of a spreadsheet, may lose this part of themselves.
_ROUNDING = 1e-9
_NAMES_SHOWN = 5

# Breaches that a run may choose with its targets: no errors, but the rule does not hold.
_ONE_FOR_ALL = "one-voice-for-all"
_OF_COMMAND = "voices-of-a-command"
_CHOSEN_BY_COMMAND = "voices-chosen-by-a-command"
_ALLOWED_BREACHES = ("shared-target", "target-for-both")

Place = tuple[Role, str, str]  # role, split, speaker
Voice = tuple[float, ...] | str


@dataclass(frozen=True, slots=True)
class VoiceReport:
    """What was found of the voices of a run or of a system.

    Attributes:
        n_assignments: how many were given.
        n_speakers: who has a voice of their own, whatever the role and the split.
        n_utterances: utterances with a voice of their own.
        n_voices: different voices among all.
        distance: by how much any two voices had to differ at least; 0 where nothing was promised.
        smallest_distance: the smallest one found between two speakers of a role and split, or between a speaker's
            enrolment and trial; None where there are no two, or no parameters to tell it from.
        problems: what is out of order, and notes on what could not be told.
    """

    n_assignments: int
    n_speakers: int
    n_utterances: int
    n_voices: int
    distance: float
    smallest_distance: float | None
    problems: tuple[Problem, ...]

    @property
    def voices_differ(self) -> bool:
        """Return whether voices differ as they must (rule (d)), as far as they tell."""
        return not self._breaches and not self._is_one_for_all and not self._are_unknown

    @property
    def _is_one_for_all(self) -> bool:
        return any(problem.code == _ONE_FOR_ALL for problem in self.problems)

    @property
    def _are_unknown(self) -> bool:
        return any(problem.code == _CHOSEN_BY_COMMAND for problem in self.problems)

    @property
    def _breaches(self) -> list[Problem]:
        return [each for each in self.problems if each.severity is Severity.ERROR or each.code in _ALLOWED_BREACHES]

    def sentence(self) -> str:
        """Return the report in a sentence or two."""
        parts = [f"{_counted(self.n_speakers, 'speaker')} at speaker level" if self.n_speakers else ""]
        parts.append(f"{_counted(self.n_utterances, 'utterance')} at utterance level" if self.n_utterances else "")
        who = " and ".join(filter(None, parts)) or "Nobody"
        if self._are_unknown:
            return f"{who}: the command chooses the voices itself. Whether they differ is not known here."
        text = f"{who}: {_counted(self.n_voices, 'different voice')}"
        if self.smallest_distance is not None:
            promise = f" (required: {self.distance:.4g})" if self.distance else ""
            text += f", any two at least {self.smallest_distance:.4g} apart{promise}"
        return f"{text}. {self._verdict()}"

    def _verdict(self) -> str:
        if errors := sum(problem.count for problem in self._breaches):
            return f"Voices do not differ as required: {_counted(errors, 'problem')}."
        if self._is_one_for_all:
            return "This method has no parameters, so nothing here makes its voices differ."
        if any(problem.code == _OF_COMMAND for problem in self.problems):
            return "The command is given a key and a seed for each; whether it uses them is not known here."
        return "Voices differ as required."


def check_voices_of_method(
    method: Anonymizer, assignments: Iterable[Assignment], *, distance: float, file: str = "voices.csv"
) -> VoiceReport:
    """As `check_voices` with the parameters of the method, or by targets where its voices are those of targets."""
    if takes_targets(method):
        return check_target_voices(assignments, file=file)
    if plans_voices(method):
        return check_voices(assignments, None, distance=0.0, file=file)
    if not method.parameters and (is_given := getattr(method, "is_given_voices", None)) is not None:
        return check_command_voices(assignments, is_given=is_given, file=file)
    return check_voices(assignments, method.parameters, distance=distance, file=file)


def check_command_voices(assignments: Iterable[Assignment], *, is_given: bool, file: str = "voices.csv") -> VoiceReport:
    """Return the report for a command; one that is given no key chooses, and its voices are unknown."""
    report = check_voices(assignments, None, distance=0.0, file=file, is_command=True)
    if is_given:
        return report
    expected, found = "voices that differ between speakers", "a command that is told nothing of them"
    remedy = "Make sure that it gives each speaker a voice of their own, where the edition asks for that."
    note = Problem(_CHOSEN_BY_COMMAND, file, expected, found, remedy, Severity.NOTE)
    return replace(report, n_voices=0, problems=(note,))


def check_target_voices(assignments: Iterable[Assignment], *, file: str = "voices.csv") -> VoiceReport:
    """Return who shares a target although the rule gives everybody a voice of their own; distances between targets are
    none.

    At speaker level: speakers of a role and split with one target, and a speaker with one for enrolment and trials, are
    warnings. At utterance level targets may come again.
    """
    rows = list(assignments)
    problems = ProblemList()
    speakers: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for row in rows:
        if row.level == "speaker":
            speakers[row.role, row.split, row.speaker].add(row.voice.target)
    problems.keep(_without_target(rows, file))
    problems.keep(_shared_targets(speakers, file))
    problems.keep(_alike_targets(speakers, file))
    return VoiceReport(
        n_assignments=len(rows),
        n_speakers=len({speaker for _, _, speaker in speakers}),
        n_utterances=len({(row.role, row.split, row.utterance) for row in rows if row.level == "utterance"}),
        n_voices=len({row.voice.target for row in rows}),
        distance=0.0,
        smallest_distance=None,
        problems=problems.report(),
    )


def check_voices(
    assignments: Iterable[Assignment],
    parameters: Sequence[Parameter] | None,
    *,
    distance: float,
    file: str = "voices.csv",
    is_command: bool = False,
) -> VoiceReport:
    """Return whether the voices fulfil rule (d) of the task, by what is written of them.

    At speaker level, within each role and split and whatever the data set: a speaker has one voice, two speakers have
    two that differ by `distance` at least, and a speaker's voice for enrolment differs as much from the one for trials.
    At utterance level each utterance has its own.

    Args:
        parameters: of the method; empty where all share one voice; None where nobody knows what the numbers of an
            uploaded system mean: voices are then equal or not, and how far apart they are cannot be told.
        distance: what the plan of the voices promised (`VoicePlan.distance`); 0 for nothing.
        file: what the problems name.
        is_command: the voices are given to an external command, which may use them or not.

    Raises:
        MethodError: parameters that no method can have (`validate_parameters`).
    """
    rows = list(assignments)
    problems = ProblemList()
    smallest: float | None = None
    if parameters is not None:
        validate_parameters(parameters)
        problems.keep(_wrong_voices(rows, parameters, file))
    at_speaker_level = _voices_by_speaker(row for row in rows if row.level == "speaker")
    at_utterance_level = [row for row in rows if row.level == "utterance"]
    one_for_all = parameters is not None and not parameters
    if one_for_all:
        problems.add(_one_voice_for_all(rows, file))
    else:
        problems.keep(_several_voices(at_speaker_level, file))
        problems.keep(_shared_by_speakers(at_speaker_level, file))
        problems.keep(_alike_enrolment(at_speaker_level, file))
        problems.keep(_shared_by_utterances(at_utterance_level, file))
        if parameters is None:
            problems.keep(
                []
                if all(row.voice.mixture or row.voice.vector for row in rows)
                else [_unknown_distance(file, is_command=is_command)]
            )
        elif "wrong-voice" not in problems.error_codes():
            first = {place: found_rows[0] for place, found_rows in at_speaker_level.items()}
            nearest = [*_nearest_speakers(first, parameters), *_own_trials(first, parameters)]
            smallest = min((found for *_, found in nearest), default=None)
            problems.keep(_too_close(nearest, distance, file))
    return VoiceReport(
        n_assignments=len(rows),
        n_speakers=len({speaker for _, _, speaker in at_speaker_level}),
        n_utterances=len({(row.role, row.split, row.speaker, row.utterance) for row in at_utterance_level}),
        n_voices=min(1, len(rows)) if one_for_all else len({_voice(row) for row in rows}),
        distance=distance,
        smallest_distance=smallest,
        problems=problems.report(),
    )


def _voice(row: Assignment) -> Voice:
    """Return what a voice is known by."""
    if row.voice.vector:
        return row.voice.vector
    if mixture := row.voice.mixture:
        return ";".join(f"{name}={mixture[name]!r}" for name in sorted(mixture))
    values = row.voice.parameters
    return tuple(values[name] for name in sorted(values)) if values else row.voice.key


def _voices_by_speaker(rows: Iterable[Assignment]) -> dict[Place, list[Assignment]]:
    """Of each speaker of a role and split one assignment for each different voice, in their order."""
    found: dict[Place, dict[Voice, Assignment]] = defaultdict(dict)
    for row in rows:
        found[row.role, row.split, row.speaker].setdefault(_voice(row), row)
    return {place: list(voices.values()) for place, voices in found.items()}


def _wrong_voices(rows: Iterable[Assignment], parameters: Sequence[Parameter], file: str) -> Iterator[Problem]:
    expected = {parameter.name for parameter in parameters}
    for row in rows:
        values = row.voice.parameters
        if set(values) != expected:
            wanted = f"the parameters {', '.join(sorted(expected)) or 'none'}"
            found = f"{', '.join(sorted(values)) or 'none'} for {_name(row)}"
            yield _error("wrong-voice", file, wanted, found, "Use the voices of this method.", row)
            continue
        for parameter in parameters:
            if not parameter.holds(values[parameter.name]):
                wanted = f"{parameter.name} from {parameter.describe_range('outside')}"
                found = f"{values[parameter.name]:g} for {_name(row)}"
                yield _error("wrong-voice", file, wanted, found, "Use the voices of this method.", row)


def _one_voice_for_all(rows: Sequence[Assignment], file: str) -> Problem:
    expected = "voices that differ between speakers, and between enrolment and trials"
    found = f"a method without parameters: one voice for all {_counted(len({row.speaker for row in rows}), 'speaker')}"
    remedy = "Choose another one where voices must be distinct, unless it is a program that chooses voices itself."
    return Problem(_ONE_FOR_ALL, file, expected, found, remedy, Severity.NOTE)


def _unknown_distance(file: str, *, is_command: bool) -> Problem:
    if is_command:
        expected, found = "voices with parameters, to compute how much they differ", "keys and seeds given to a command"
        remedy = "Make sure that the command uses them: listen, or compare its output by an encoder."
        return Problem(_OF_COMMAND, file, expected, found, remedy, Severity.NOTE)
    expected = "parameters with known ranges, to compute how much voices differ"
    remedy = "Voices were compared as equal or different only; check them by an encoder."
    return Problem("distance-not-known", file, expected, "an uploaded system's", remedy, Severity.NOTE)


def _several_voices(speakers: Mapping[Place, Sequence[Assignment]], file: str) -> Iterator[Problem]:
    for (role, split, speaker), rows in speakers.items():
        if len(rows) > 1:
            expected = f"one voice for all {role} utterances of the speaker {speaker} in {split}"
            found = f"{len(rows)} voices, in {name_some([row.utterance or 'all utterances' for row in rows], 5)}"
            remedy = "Anonymise these data sets again with one seed, over all speakers of the split."
            yield _error("several-voices", file, expected, found, remedy, rows[1])


def _shared_by_speakers(speakers: Mapping[Place, Sequence[Assignment]], file: str) -> Iterator[Problem]:
    shared: dict[tuple[str, str, Voice], list[Assignment]] = defaultdict(list)
    for (role, split, _), rows in speakers.items():
        for row in rows:
            shared[role, split, _voice(row)].append(row)
    for (of_role, of_split, _), rows in shared.items():
        if len(rows) > 1:
            expected = f"a voice of their own for each speaker of {of_role}, {of_split}"
            found = f"one voice for {len(rows)}: {name_some([row.speaker for row in rows], 5)}"
            yield _error("shared-voice", file, expected, found, "Draw the voices of the split together.", rows[1])


def _alike_enrolment(speakers: Mapping[Place, Sequence[Assignment]], file: str) -> Iterator[Problem]:
    for (role, split, speaker), rows in speakers.items():
        if role != "enrolment":
            continue
        trial = {_voice(row) for row in speakers.get(("trial", split, speaker), ())}
        if alike := [row for row in rows if _voice(row) in trial]:
            expected = f"a voice for trials of the speaker {speaker} in {split} that is not the one for enrolment"
            remedy = "Draw the voices of both roles separately."
            yield _error("enrolment-like-trial", file, expected, "the same voice", remedy, alike[0])


def _shared_by_utterances(rows: Iterable[Assignment], file: str) -> Iterator[Problem]:
    users: dict[Voice, dict[tuple[str, str, str, str], Assignment]] = defaultdict(dict)
    voices: dict[tuple[str, str, str, str], set[Voice]] = defaultdict(set)
    for row in rows:
        name = (row.role, row.split, row.speaker, row.utterance)
        users[_voice(row)].setdefault(name, row)
        voices[name].add(_voice(row))
        if len(voices[name]) == 2:
            expected, remedy = f"one voice for the utterance {row.utterance}", "Keep the line that was used."
            yield _error("several-voices", file, expected, "two", remedy, row)
    for sharing in users.values():
        if len(sharing) > 1:
            named = list(sharing.values())
            found = f"one voice for {len(named)}: {name_some([row.utterance for row in named], 5)}"
            remedy = "At utterance level, draw a voice for each utterance."
            yield _error("shared-voice", file, "a voice of its own for each utterance", found, remedy, named[1])


Pair = tuple[Assignment, Assignment, float]


def _nearest_speakers(first: Mapping[Place, Assignment], parameters: Sequence[Parameter]) -> list[Pair]:
    """Of each role and split, each speaker with the one whose voice is nearest."""
    from scipy.spatial import KDTree

    groups: dict[tuple[str, str], list[Assignment]] = defaultdict(list)
    for (role, split, _), row in first.items():
        groups[role, split].append(row)
    pairs: list[Pair] = []
    for rows in groups.values():
        if len(rows) < 2:
            continue
        places: npt.NDArray[np.float64] = np.array(
            [[row.voice.parameters[each.name] / each.extent for each in parameters] for row in rows]
        )
        _, nearest = KDTree(places).query(places, k=2, p=np.inf)
        for index, (one, other) in enumerate(nearest.tolist()):
            # Where voices are equal, the voice itself may come second.
            pairs.append(_pair(rows[index], rows[one if one != index else other], parameters))
    return pairs


def _own_trials(first: Mapping[Place, Assignment], parameters: Sequence[Parameter]) -> list[Pair]:
    """Return each speaker's enrolment with the same speaker's trial."""
    return [
        _pair(row, first["trial", split, speaker], parameters)
        for (role, split, speaker), row in first.items()
        if role == "enrolment" and ("trial", split, speaker) in first
    ]


def _pair(one: Assignment, other: Assignment, parameters: Sequence[Parameter]) -> Pair:
    return one, other, voice_distance(one.voice, other.voice, parameters)


def _too_close(pairs: Iterable[Pair], distance: float, file: str) -> Iterator[Problem]:
    """Yield voices that are nearer than promised; equal ones are named elsewhere."""
    told: set[frozenset[tuple[str, str]]] = set()
    for one, other, found in pairs:
        names = frozenset({(one.role, one.speaker), (other.role, other.speaker)})
        if names in told or not 0 < found < distance * (1 - _ROUNDING):
            continue
        told.add(names)
        expected = f"voices that differ by {distance:.4g} of their range or more"
        sentence = f"{found:.4g} between {_name(one)} and {_name(other)}"
        remedy = "Draw the voices of all speakers of the split together."
        yield _error("voices-too-close", file, expected, sentence, remedy, other)


def _name(row: Assignment) -> str:
    named = f"the utterance {row.utterance}" if row.level == "utterance" else f"the speaker {row.speaker}"
    return f"{named} ({row.role}, {row.split})"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _error(code: str, file: str, expected: str, found: str, remedy: str, row: Assignment) -> Problem:
    return Problem(code, file, expected, found, remedy, line=row.line)


# Voices of targets ----------------------------------------------------------------------------------


def _without_target(rows: Sequence[Assignment], file: str) -> Iterator[Problem]:
    for row in rows:
        if not row.voice.target:
            expected = f"a target for {row.utterance or f'the speaker {row.speaker}'}"
            yield Problem("no-target", file, expected, "none", "Plan the targets again.", line=row.line)


def _shared_targets(speakers: Mapping[tuple[str, str, str], set[str]], file: str) -> Iterator[Problem]:
    users: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for (role, split, speaker), targets in speakers.items():
        for target in targets:
            users[role, split, target].append(speaker)
    for (role, split, target), sharing in users.items():
        if len(sharing) > 1:
            named = ", ".join(sharing[:_NAMES_SHOWN]) + (", …" if len(sharing) > _NAMES_SHOWN else "")
            expected = f"a target of its own for each speaker of {role}, {split}"
            found = f"{target} for {len(sharing)}: {named}"
            remedy = "Use a pool of as many targets as there are speakers, or read the results with this in mind."
            yield Problem("shared-target", file, expected, found, remedy, Severity.WARNING)


def _alike_targets(speakers: Mapping[tuple[str, str, str], set[str]], file: str) -> Iterator[Problem]:
    for (role, split, speaker), targets in speakers.items():
        both = targets & speakers.get(("trial", split, speaker), set())
        if role == "enrolment" and both:
            expected = f"another target for trials of {speaker} in {split} than for enrolment"
            remedy = "Use a selection and a pool that leave a choice."
            yield Problem("target-for-both", file, expected, min(both), remedy, Severity.WARNING)
