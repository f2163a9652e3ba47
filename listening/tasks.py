"""The tasks of the listening test: what evaluators are asked, and how results about it read.

A new rated task is one definition in `RATED_TASKS` and its member of `Task`, its instructions in `listening.texts`, and
a migration of the choices. Sentences for evaluators are English here and are translated where a page shows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Task(StrEnum):
    """What an evaluator is asked about a trial."""

    VERIFIABILITY = "verifiability"
    NATURALNESS = "naturalness"
    INTELLIGIBILITY = "intelligibility"
    LINKABILITY = "linkability"
    TRANSCRIPTION = "transcription"

    @property
    def label(self) -> str:
        return self.value.capitalize()


@dataclass(frozen=True, slots=True)
class RatedTask:
    """A task that is answered on the scale of the study.

    Attributes:
        question, hint: for evaluators, as `lowest` and `highest`, which say what the two ends of the scale mean.
            Results quote the question.
        listen_again: the slot that can be played again beside the question.
        reading: how its first table is to be read.
        compares_voices: whether sample A is judged against sample B; its first number is then an equal error rate of
            evaluators, and of any other task a mean.
        worse: what is said of a system that is rated below unprotected speech.
        best: what is said of the system that is rated highest, with its verb.
    """

    task: Task
    question: str
    hint: str
    lowest: str
    highest: str
    reading: str
    listen_again: str = ""
    compares_voices: bool = False
    worse: str = ""
    best: str = ""

    @property
    def title(self) -> str:
        return self.task.label

    @property
    def said_of_best(self) -> str:
        """Return what is said of the system that is rated highest, of a task without words for it, too."""
        return self.best or f"is rated highest for {self.title.lower()}"


def _(sentence: str) -> str:
    """Mark a sentence for the catalogues of translations."""
    return sentence


# In the order of asking, that of 2022.
RATED_TASKS: Mapping[str, RatedTask] = {
    one.task.value: one
    for one in (
        RatedTask(
            Task.VERIFIABILITY,
            question=_("Do A and B come from the same speaker?"),
            hint=_(
                "A voice may be disguised: judge whether the same person speaks, not whether the voices or the words "
                "are alike."
            ),
            lowest=_("surely different speakers"),
            highest=_("surely the same speaker"),
            reading="The equal error rate of listeners who say whether two samples are of one speaker, both errors "
            "being equally frequent. Near 50 % they guess. The first row is the check: only where the rate of "
            "unprotected speech is low is a high one privacy, else the task was too hard.",
            compares_voices=True,
        ),
        RatedTask(
            Task.NATURALNESS,
            question=_("How natural does A sound?"),
            hint=_("Natural speech may have background noise. Judge the sound, not the words."),
            lowest=_("totally unnatural, severe degradation"),
            highest=_("totally natural, no degradation"),
            reading="Mean score, higher is more natural. The equal error rate beside it is that of telling "
            "unprotected speech from the system by these ratings alone: near 50 % the system sounds as natural as "
            "unprotected speech.",
            worse="less natural",
            best="sounds most natural",
        ),
        RatedTask(
            Task.INTELLIGIBILITY,
            question=_("How well can you understand A?"),
            hint=_("Judge whether you understand the words, not how the voice sounds."),
            lowest=_("not understandable at all"),
            highest=_("perfectly understandable"),
            reading="Mean score, higher is easier to understand. The equal error rate beside it is that of telling "
            "unprotected speech from the system by these ratings alone: near 50 % the system is as easy to understand.",
            listen_again="a",
            worse="harder to understand",
            best="is easiest to understand",
        ),
    )
}
RATED: tuple[str, ...] = tuple(RATED_TASKS)
COMPARING = frozenset(name for name, one in RATED_TASKS.items() if one.compares_voices)

# What is asked of a trial in which nothing is rated, by the part of its page that says it.
WRITTEN: Mapping[str, str] = {
    "write": _("Write down what you hear, word for word"),
    "hint": _(
        "Write what you understood, even if it is only a part. Upper and lower case and punctuation do not "
        "matter. Please type it yourself: nothing can be pasted here."
    ),
}
PLACED: Mapping[int, str] = {  # by the dimensions of the board
    1: _(
        "Listen to every sample and put it on the line: the more alike two voices sound, the closer together."
        " Judge the voice, not the words and not the sound quality. Left and right have no meaning; only the "
        "distance between the samples counts."
    ),
    2: _(
        "Listen to every sample and put it on the board: the more alike two voices sound, the closer "
        "together. Judge the voice, not the words and not the sound quality. Their place on the board does "
        "not matter; only the distance between the samples counts."
    ),
}
ASKED_OF_BOARDS: Mapping[str, str] = {
    "group": _("Give each sample a group: one letter for each speaker that you hear."),
    "speakers": _("How many different speakers do you hear among these samples?"),
}


def asked_of_trial(task: str, *, dimensions: int) -> dict[str, str]:
    """What is asked of a trial of a task without ratings, in English: `write` and its `hint`, or `place`, `group` and
    `speakers` of a board; nothing of other tasks.

    Args:
        dimensions: of a board.
    """
    if task == Task.LINKABILITY:
        return {"place": PLACED[dimensions], **ASKED_OF_BOARDS}
    return dict(WRITTEN) if task == Task.TRANSCRIPTION else {}
