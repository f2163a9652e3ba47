"""Rule (d) of the task, checked when a run has ended, over all runs of its submission that share its split."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, cast

from anonymization.methods.checks import Assignment, VoiceReport
from anonymization.methods.contract import Anonymizer
from anonymization.methods.pseudo_speakers import Level, Role
from anonymization.methods.registry import get_method
from anonymization.methods.target_checks import check_voices_of_method
from anonymization.models import AnonymizationRun
from anonymization.running import CHUNK, EXAMPLES
from anonymization.voices import parameters_of, planned_voices, split_of, voice_in
from evaluation.formats.problem_list import ProblemList
from evaluation.formats.problems import Problem


@dataclass(frozen=True)
class VoicesFound:
    """What `check_voices` found, with as many problems of a cause as a page shows."""

    report: VoiceReport
    problems: list[Problem]

    def as_stored(self) -> dict[str, Any]:
        """As the report of a run keeps it."""
        return {
            "sentence": self.report.sentence(),
            "holds": self.report.holds,
            "n_voices": self.report.n_voices,
            "distance": self.report.distance,
            "smallest_distance": self.report.smallest_distance,
            "problems": [asdict(problem) for problem in self.problems],
        }


def check_voices_of(run: AnonymizationRun) -> VoicesFound:
    """The voices of this run, and at speaker level beside those of the other runs of its submission on its split.

    At utterance level each voice follows from the name of the utterance: those of other runs need not be compared.
    """
    method = get_method(run.method)
    others: list[AnonymizationRun] = []
    if run.level == AnonymizationRun.Level.SPEAKER:
        of_split = run.submission.anonymization_runs.filter(data_set__split=run.data_set.split, level=run.level)
        others = list(of_split.exclude(pk=run.pk).select_related("data_set"))
        others = [one for one in others if _names(one, method) == _names(run, method)]  # others are of another version
    found = check_voices_of_method(
        method,
        [each for one in (run, *others) for each in assignments_of(one)],
        distance=min(one.voice_distance for one in (run, *others)),
        file=run.data_set.name,
    )
    problems = ProblemList(EXAMPLES)
    problems.keep(found.problems)
    return VoicesFound(found, list(problems.report()))


def _names(run: AnonymizationRun, method: Anonymizer) -> set[str]:
    return {parameter.name for parameter in parameters_of(run, method)}


def assignments_of(run: AnonymizationRun) -> Iterator[Assignment]:
    """Which voice each speaker of a run got, or each utterance; speakers of other data sets of the split included."""
    role, split, level = cast("Role", run.data_set.role), split_of(run.data_set), cast("Level", run.level)
    if run.voices:
        for speaker, voice in planned_voices(run):
            yield Assignment(role, split, level, speaker, "", voice)
        return
    method = get_method(run.method)
    members = run.data_set.utterances.order_by("name").values_list("speaker__name", "name")
    is_utterance = run.level == AnonymizationRun.Level.UTTERANCE
    if not is_utterance:  # a run with targets, or of before plans were kept: as many voices as speakers
        members = run.data_set.utterances.order_by("speaker__name").values_list("speaker__name", "speaker__name")
        members = members.distinct()
    for speaker, name in members.iterator(chunk_size=CHUNK):
        voice = voice_in(run, speaker=speaker, utterance=name, method=method)
        yield Assignment(role, split, level, speaker, name if is_utterance else "", voice)
