"""The columns that `reading` knows: their names, other names that laboratories use for them, and their values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from listening.analysis.inputs import BRIDGE, GOLD, PRACTICE, RATED, SCORED

NEEDED = ("listener", "task", "system", "rating")


@dataclass(frozen=True, slots=True)
class InputColumn:
    """A column that is read: its usual name, other names that are taken for it, and what it holds."""

    name: str
    aliases: tuple[str, ...]
    meaning: str


COLUMNS = (
    InputColumn(
        "listener", ("listener_id", "evaluator", "participant", "participant_id", "rater", "worker", "annotator"),
        "Who rated: any token, one for each person.",
    ),
    InputColumn(
        "task", ("question", "dimension"),
        "naturalness (also: quality, mos), intelligibility, or verifiability (also: similarity, speaker similarity).",
    ),
    InputColumn("system", ("system_id", "condition", "method"), "Name of the system; original for unprotected speech."),
    InputColumn("rating", ("score", "value", "vote", "mos"), "A number; higher is more natural, clearer, more alike."),
    InputColumn("session", ("session_id", "visit"), "Which visit of the listener; without it, one session a listener."),
    InputColumn(
        "is_target", ("target", "same_speaker", "class"),
        "Whether both samples are of one speaker: 1, yes, true, target, same; 0, no, false, nontarget, different; or "
        "empty.",
    ),
    InputColumn(
        "item", ("item_id", "trial", "stimulus", "sample", "file", "clip"),
        "What was presented, equal for everybody who rated it; without it system, utterance and enrolment.",
    ),
    InputColumn(
        "utterance", ("utterance_id", "utt", "sentence", "source"),
        "Source utterance of the sample, equal across systems; without it the item.",
    ),
    InputColumn("enrolment", ("enrollment", "reference"), "The sample that it was compared with."),
    InputColumn("speaker", ("speaker_id", "spk"), "Who speaks in the sample."),
    InputColumn("gender", ("speaker_gender", "speaker_sex"), "Of the speaker: f, m or empty."),
    InputColumn("position", ("order", "trial_number", "index"), "Place of the trial in its session, from 1."),
    InputColumn("purpose", (), "scored (the usual), practice, gold (control trials) or bridge (rated by everybody)."),
    InputColumn("finished", ("is_finished", "completed", "complete"), "Whether the session was finished: 1 or 0."),
    InputColumn("excluded", ("exclusion", "is_excluded"), "Why the session does not count; empty or 0 where it does."),
    InputColumn("valid", ("is_valid", "usable"), "1 where the rating counts, 0 where it does not."),
)  # fmt: skip
TASKS: Mapping[str, str] = {
    **{task: task for task in RATED},
    **dict.fromkeys(("quality", "mos", "natural", "speech quality"), "naturalness"),
    **dict.fromkeys(("similarity", "speaker similarity", "sim", "speaker verifiability"), "verifiability"),
    **dict.fromkeys(("clarity", "understandability"), "intelligibility"),
}
PURPOSES: Mapping[str, str] = {
    **{purpose: purpose for purpose in (SCORED, PRACTICE, GOLD, BRIDGE)},
    **dict.fromkeys(("", "test", "main"), SCORED),
    "training": PRACTICE,
    **dict.fromkeys(("control", "trap", "trapping", "attention"), GOLD),
    "anchor": BRIDGE,
}
YES, NO = ("1", "true", "yes", "y", "1.0"), ("0", "false", "no", "n", "0.0")
TARGETS: Mapping[str, int] = {
    **dict.fromkeys((*YES, "target", "same"), 1),
    **dict.fromkeys((*NO, "nontarget", "different", "impostor"), 0),
    **dict.fromkeys(("", "-1"), -1),
}
NO_RATING = ("", "na", "n/a", "nan", "none", "null", "-")
_NAMES: Mapping[str, str] = {alias: one.name for one in COLUMNS for alias in (one.name, *one.aliases)}


def usual_name(header: str) -> str | None:
    """The column that a header means, whatever its case, blanks and hyphens; None where it means none."""
    return _NAMES.get(re.sub(r"[\s\-]+", "_", header.strip().lower()))
