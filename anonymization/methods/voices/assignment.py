"""Which voice each speaker or utterance of a run gets, where it is not that of a target.

Voices are drawn from keys, or planned by the method from recordings. At speaker level those of a role and split are
made together, over everybody who enrols or is tried in the split; at utterance level each is made by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from anonymization.methods.contract import Anonymizer, MethodError, Options, PseudoSpeaker, VoiceRequest, plans_voices
from anonymization.methods.voices.pseudo_speakers import (
    Assignment,
    Place,
    draw_voice,
    plan_requests,
    plan_voices,
    pseudo_speaker_key,
)
from anonymization.methods.voices.targets import SourceUtterance


@dataclass(frozen=True)
class Voices:
    """Voices in the order of what got them. distance: by which any two speakers' differ; 0 if nothing was promised."""

    assignments: tuple[Assignment, ...]
    distance: float = 0.0

    def of(self, place: Place) -> PseudoSpeaker:
        """Return the voice of an utterance: its own, else its speaker's. Raises KeyError where it has none."""
        return self._by_place.get(place) or self._by_place[*place[:3], ""]

    @cached_property
    def _by_place(self) -> dict[Place, PseudoSpeaker]:
        return {row.place: row.voice for row in self.assignments}


def assign_voices(
    method: Anonymizer, sources: Sequence[SourceUtterance], *, seed: int, options: Options | None = None
) -> Voices:
    """Draw the voices of the sources, or let the method plan them.

    Args:
        sources: each speaker of a role and split once, each utterance at utterance level once; for a method that plans
            its voices with genders and recordings.
        options: of the run.

    Raises:
        MethodError: training data at speaker level, or what `plan_voices` and the method refuse.
    """
    groups: dict[tuple[str, ...], list[SourceUtterance]] = defaultdict(list)
    speakers: dict[str, set[str]] = defaultdict(set)
    for each in sorted(sources, key=lambda each: each.place):
        if each.level == "speaker" and each.role == "training":
            raise MethodError("Training data is anonymised at utterance level; found the level speaker.")
        if each.role != "training":
            speakers[each.split].add(each.speaker)
        groups[each.place if each.utterance else each.place[:2]].append(each)
    voices: dict[Place, PseudoSpeaker] = {}
    distances = []
    for members in groups.values():
        role, split, first = members[0].role, members[0].split, members[0]
        if not first.utterance and not plans_voices(method):
            plan = plan_voices(method.parameters, seed=seed, role=role, split=split, speakers=speakers[split])
            voices |= {each.place: plan.voices[each.speaker] for each in members}
            distances.append(plan.distance)
            continue
        requests = [
            VoiceRequest(
                pseudo_speaker_key(seed=seed, role=role, split=split, speaker=each.speaker, utterance=each.utterance),
                each.gender,
                each.recordings,
                options or {},
            )
            for each in members
        ]
        made = [draw_voice(method, requests[0])] if first.utterance else plan_requests(method, requests)
        voices |= dict(zip((each.place for each in members), made, strict=True))
    assigned = (
        Assignment(each.role, each.split, each.level, each.speaker, each.utterance, voices[each.place])
        for each in sources
    )
    return Voices(tuple(assigned), min(distances, default=0.0))
