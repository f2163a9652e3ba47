"""What evaluators report about the recordings: which could not be played, and which sound wrong in which way.

While a study recruits, a recording is called by its number alone, since nobody may see how a system does; its system
and utterance are told once the study is closed. Previews do not count. Public: `reported_clips`, `KINDS`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from listening.models import ItemSample, SessionEvent, Study
from listening.trials.answers import BROKEN, REMARK
from listening.trials.payloads import SOUND_FAULTS

UNPLAYABLE = "unplayable"
KINDS = {"silence": "Silence", "cut-off": "Cut off", "noise": "Noise", "other": "Other", UNPLAYABLE: "Does not play"}
Place = tuple[int, int, str]  # block, position, slot


@dataclass(frozen=True)
class ReportedClip:
    """A recording, how often what was said of it (in the order of `KINDS`), and in how many sessions."""

    stimulus: int
    name: str
    counts: tuple[int, ...]
    sessions: int


def reported_clips(study: Study) -> list[ReportedClip]:
    """Every recording of which something was reported, the one of most sessions first: at most two queries."""
    events = SessionEvent.objects.filter(
        session__study=study, session__is_preview=False, kind__in=(BROKEN, REMARK), is_told=False
    )
    told: dict[Place, list[tuple[int, str]]] = defaultdict(list)
    for block, session, data in events.values_list("session__block", "session", "data"):
        what = data["what"] if data["what"] in SOUND_FAULTS else UNPLAYABLE
        told[block, data["position"], data["slot"]].append((session, what))
    if not told:
        return []
    of_stimulus: dict[int, list[tuple[int, str]]] = defaultdict(list)
    names: dict[int, str] = {}
    for stimulus, name, place in _stimuli(study, told):
        of_stimulus[stimulus] += told[place]
        names[stimulus] = name
    clips = [
        ReportedClip(
            stimulus,
            names[stimulus],
            tuple(Counter(what for _, what in reports)[kind] for kind in KINDS),
            len({session for session, _ in reports}),
        )
        for stimulus, reports in of_stimulus.items()
    ]
    return sorted(clips, key=lambda clip: (-clip.sessions, clip.stimulus))


def _stimuli(study: Study, places: dict[Place, list[tuple[int, str]]]) -> list[tuple[int, str, Place]]:
    """Stimulus, its name and where it stands, of each place that is asked for."""
    rows = ItemSample.objects.filter(
        item__trials__block__in={block for block, _, _ in places},
        item__trials__position__in={position for _, position, _ in places},
        slot__in={slot for _, _, slot in places},
    ).values_list(
        *("stimulus", "stimulus__system__code", "stimulus__utterance__name"),
        *("item__trials__block", "item__trials__position", "slot"),
    )
    is_closed = study.state == Study.State.CLOSED
    return [
        (stimulus, f"{system or 'original'}, {utterance}" if is_closed else "", (block, position, slot))
        for stimulus, system, utterance, block, position, slot in rows
        if (block, position, slot) in places
    ]
