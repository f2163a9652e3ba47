"""Rule (d) of the task for methods whose voices are those of targets: what holds, and what the selection gives up.

Two speakers can share a target where the pool is smaller than they are many, and all do where the selection says so:
that is stated, and is a warning where it breaks the rule. Conventions as in `checks`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from anonymization.methods.checks import Assignment, VoiceReport, check_voices
from anonymization.methods.contract import Anonymizer, takes_targets
from evaluation.formats.problem_list import ProblemList
from evaluation.formats.problems import Problem, Severity

_NAMES_SHOWN = 5


def check_voices_of_method(
    method: Anonymizer, assignments: Iterable[Assignment], *, distance: float, file: str = "voices.csv"
) -> VoiceReport:
    """As `check_voices` with the parameters of the method, or by targets where its voices are those of targets."""
    if takes_targets(method):
        return check_target_voices(assignments, file=file)
    return check_voices(assignments, method.parameters, distance=distance, file=file)


def check_target_voices(assignments: Iterable[Assignment], *, file: str = "voices.csv") -> VoiceReport:
    """Who shares a target although the rule gives everybody a voice of their own; distances between targets are none.

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
    problems.keep(_shared(speakers, file))
    problems.keep(_alike(speakers, file))
    return VoiceReport(
        n_assignments=len(rows),
        n_speakers=len(speakers),
        n_utterances=len({(row.role, row.split, row.utterance) for row in rows if row.level == "utterance"}),
        n_voices=len({row.voice.target for row in rows}),
        distance=0.0,
        smallest_distance=None,
        problems=problems.report(),
    )


def _without_target(rows: Sequence[Assignment], file: str) -> Iterator[Problem]:
    for row in rows:
        if not row.voice.target:
            expected = f"a target for {row.utterance or f'the speaker {row.speaker}'}"
            yield Problem("no-target", file, expected, "none", "Plan the targets again.", line=row.line)


def _shared(speakers: Mapping[tuple[str, str, str], set[str]], file: str) -> Iterator[Problem]:
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


def _alike(speakers: Mapping[tuple[str, str, str], set[str]], file: str) -> Iterator[Problem]:
    for (role, split, speaker), targets in speakers.items():
        both = targets & speakers.get(("trial", split, speaker), set())
        if role == "enrolment" and both:
            expected = f"another target for trials of {speaker} in {split} than for enrolment"
            remedy = "Use a selection and a pool that leave a choice."
            yield Problem("target-for-both", file, expected, min(both), remedy, Severity.WARNING)
