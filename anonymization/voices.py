"""Which voice each utterance of a run gets, from what the run has stored or from its key alone.

At speaker level the voices of all speakers of a split are planned together when the runs begin, so that any two differ
by a stated distance, and each run keeps the plan. At utterance level, and in runs of before plans were kept, a voice
follows from the seed and the names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from anonymization.methods.contract import Anonymizer, Parameter, PseudoSpeaker
from anonymization.methods.errors import MethodError
from anonymization.methods.pseudo_speakers import (
    Role,
    VoicePlan,
    draw_pseudo_speaker,
    plan_voices,
    pseudo_speaker_key,
    usual_level,
)
from anonymization.methods.registry import get_method
from anonymization.models import AnonymizationRun
from anonymization.targets import UNDIVIDED as UNDIVIDED
from anonymization.targets import target_voice_in
from portal.challenges.models import Corpus, DataSet, Speaker, Utterance
from portal.challenges.models import Role as SetRole

# The level that the role of each data set asks for.
BY_ROLE = "role"
# What stands for the meaning of a number that only another version of a method knows.
FORGOTTEN = "a parameter of another version of the method"


def split_of(data_set: DataSet) -> str:
    """The name of a data set's split as keys hold it."""
    return data_set.split or UNDIVIDED


def level_for(data_set: DataSet, wanted: str) -> str:
    """The level at which a data set is anonymised where `wanted` is asked for: a level, or what its role asks for."""
    return usual_level(cast("Role", data_set.role)) if wanted == BY_ROLE else wanted


def plan_for(method: Anonymizer, data_set: DataSet, seed: int) -> VoicePlan:
    """The voices of all speakers of the data set's split in its role, whatever data sets they are in."""
    return plan_voices(
        method.parameters,
        seed=seed,
        role=cast("Role", data_set.role),
        split=split_of(data_set),
        speakers=speakers_of_split(data_set.corpus, data_set.split),
    )


def speakers_of_split(corpus: Corpus, split: str) -> list[str]:
    """Names of everybody who enrols or is tried in a split."""
    sets = corpus.data_sets.filter(split=split, role__in=[SetRole.ENROLMENT, SetRole.TRIAL])
    members = DataSet.utterances.through.objects.filter(dataset__in=sets).values("utterance__speaker")
    return list(Speaker.objects.filter(pk__in=members).order_by("name").values_list("name", flat=True))


def stored_voices(plan: VoicePlan) -> dict[str, Any]:
    """A plan as a run keeps it."""
    return {speaker: {"key": voice.key, "parameters": dict(voice.parameters)} for speaker, voice in plan.voices.items()}


def planned_voices(run: AnonymizationRun) -> Iterator[tuple[str, PseudoSpeaker]]:
    """The voices that a run at speaker level keeps, by speaker."""
    for speaker, stored in sorted(run.voices.items()):
        yield speaker, PseudoSpeaker(stored["key"], stored["parameters"])


def parameters_of(run: AnonymizationRun, method: Anonymizer | None) -> list[Parameter]:
    """The parameters that the voices of a run have: of its plan where it keeps one, else of the method.

    A plan may come from a version of the method with other parameters than the one at hand: what that does not know
    has no extent, and stands last.
    """
    known = method.parameters if method else ()
    stored = next((voice["parameters"] for voice in run.voices.values()), None)
    return list(known) if stored is None else _described(stored, known)


def parameters_with_values(voice: PseudoSpeaker, known: Sequence[Parameter]) -> list[tuple[Parameter, float]]:
    """Each number of a voice beside what it is, as `parameters_of` has it."""
    return [(one, voice.parameters[one.name]) for one in _described(voice.parameters, known)]


def _described(stored: Mapping[str, float], known: Sequence[Parameter]) -> list[Parameter]:
    names = {parameter.name for parameter in known}
    forgotten = [Parameter(name, "", 0.0, 0.0, FORGOTTEN) for name in stored if name not in names]
    return [*(parameter for parameter in known if parameter.name in stored), *forgotten]


def pseudo_speaker_of(run: AnonymizationRun, utterance: Utterance) -> PseudoSpeaker:
    """The voice that this utterance gets in this run. Raises MethodError as `voice_in`."""
    return voice_in(run, speaker=utterance.speaker.name, utterance=utterance.name)


def voice_in(run: AnonymizationRun, *, speaker: str, utterance: str, method: Anonymizer | None = None) -> PseudoSpeaker:
    """The voice of an utterance by its name and its speaker's; `method`: of the run, where it is at hand.

    Raises:
        MethodError: the plan of the run has no voice for the speaker, who came later; one that was drawn apart could be
            near another's. Or there is no such method.
    """
    if run.target_selection:
        return target_voice_in(run, speaker=speaker, utterance=utterance)
    if run.level == AnonymizationRun.Level.SPEAKER and run.voices:
        if speaker not in run.voices:
            raise MethodError(
                f"The run on {run.data_set} has no voice for speaker {speaker}, who was not in the corpus when the "
                f"voices of its {len(run.voices)} speakers were planned."
            )
        stored = run.voices[speaker]
        return PseudoSpeaker(stored["key"], stored["parameters"])
    key = pseudo_speaker_key(
        seed=run.seed,
        role=cast("Role", run.data_set.role),
        split=split_of(run.data_set),
        speaker=speaker,
        utterance=utterance if run.level == AnonymizationRun.Level.UTTERANCE else "",
    )
    return draw_pseudo_speaker(key, (method or get_method(run.method)).parameters)
