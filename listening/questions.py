"""The questions of a listening test as data, and the presets that a test begins with, each a file in `presets/`.

A question is known by its key. How it is answered (`kind`), what is heard for it (`screen`) and its wording by language
are all that the portal, the analysis and the results know of it: a new question or preset changes no Python.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from common.errors import ProblemsError

FOLDER = Path(__file__).parent / "presets"
FIRST_PRESET = "voiceprivacy-2022"
FEWEST_POINTS, MOST_POINTS, MOST_QUESTIONS = 2, 10, 12
ITEMS_TO_PRACTISE = 10  # for each practice trial that is proposed
_MOST_CHOICES = {"pair": 3, "triple": 2}
KEY = re.compile(r"[a-z][a-z0-9-]{0,39}")


class Kind(StrEnum):
    """How a question is answered."""

    SCALE = "scale"
    CHOICE = "choice"
    SLIDER = "slider"
    TEXT = "text"
    PLACEMENT = "placement"


class Screen(StrEnum):
    """What is heard for a question.

    A of a trial with B of an enrolment; A alone; the reference, then A; A and B in two conditions; X, which is A or B;
    the reference and one recording in every condition; the samples of a board.
    """

    VOICES = "voices"
    SINGLE = "single"
    REFERENCE = "reference"
    PAIR = "pair"
    TRIPLE = "triple"
    MANY = "many"
    BOARD = "board"


class Orders(StrEnum):
    """In which order the questions of a test are asked."""

    AS_LISTED = "as-listed"
    SWAP_FIRST_TWO = "swap-first-two"


FEWEST_TO_SWAP = 3  # the last question is the same for everybody
SCREENS: Mapping[str, tuple[Screen, ...]] = {
    Kind.SCALE: (Screen.VOICES, Screen.SINGLE, Screen.REFERENCE, Screen.PAIR),
    Kind.CHOICE: (Screen.SINGLE, Screen.PAIR, Screen.TRIPLE),
    Kind.SLIDER: (Screen.MANY,),
    Kind.TEXT: (Screen.SINGLE,),
    Kind.PLACEMENT: (Screen.BOARD,),
}
OF_CORPUS = frozenset({Screen.VOICES, Screen.BOARD})  # who speaks there has to be known
COMPARING = frozenset({Screen.PAIR, Screen.TRIPLE, Screen.MANY})  # conditions of one item in one trial
PAIRED = frozenset({Screen.PAIR, Screen.TRIPLE})  # of which two are compared
# One recording can be changed for another at the same place, and a part of each is enough.
SWITCHING = frozenset({Screen.TRIPLE, Screen.MANY})
REFERENCE = "r"  # slot of the reference, which is not rated
PART_S = 2.0  # of each recording that has to be heard there, or all of a shorter one
NEEDS_REFERENCE = frozenset({Screen.REFERENCE, Screen.MANY})
MOST_AT_ONCE = 12  # conditions on the screen `MANY`
COMPARED_SLOTS = ("a", "b", *map(str, range(1, MOST_AT_ONCE + 1)))  # all but the reference and X
SLIDER_ENDS = (0, 100)
# How answers are analysed, by kind and screen: `listening.analysis.reading.answer_values`.
_ANALYSED_AS = {
    (Kind.SCALE, Screen.PAIR): "ccr",
    (Kind.CHOICE, Screen.PAIR): "ab",
    (Kind.CHOICE, Screen.TRIPLE): "abx",
    (Kind.CHOICE, Screen.SINGLE): "choice",
    (Kind.SLIDER, Screen.MANY): "mushra",
}


@dataclass(frozen=True, slots=True)
class Wording:
    """The words of a question in one language.

    Attributes:
        labels: of a scale, from the lowest point to the highest: a word for each point, or for the two ends alone; of
            a choice a word for each; of a slider a word for each band, from the lowest.
        instructions: in Markdown, for the page before the trials; ``{top}`` stands for the highest point.
        consent: what an evaluator does, as the end of “you will say …”; of another kind than a scale “you will …”.
    """

    question: str
    hint: str = ""
    labels: tuple[str, ...] = ()
    instructions: str = ""
    consent: str = ""


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question of a listening test.

    Attributes:
        points: of a scale, from 1 up; the highest point is the best, or of voices “the same speaker”. Of A against B
            as many below 0 as above. Of a choice how many there are: of a pair A, B and perhaps neither.
        listen_again: whether sample A can be played again beside the question.
        wording: by language.
        results: words of results, in English, each of which has a general one in its place: `title`, `reading` (how its
            first table is read), `worse` (said of a system below unprotected speech), `best` (of the highest one).
    """

    key: str
    wording: Mapping[str, Wording]
    kind: str = Kind.SCALE
    screen: str = Screen.SINGLE
    points: int = 10
    listen_again: bool = False
    results: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_rated(self) -> bool:
        return self.kind == Kind.SCALE

    @property
    def is_judged(self) -> bool:
        """Return whether the answer is a judgement, and no text or placement."""
        return self.kind not in (Kind.TEXT, Kind.PLACEMENT)

    @property
    def compares_voices(self) -> bool:
        """Return whether A is judged against B: its first number is then an EER, else a mean."""
        return self.is_rated and self.screen == Screen.VOICES

    @property
    def is_heard_in_parts(self) -> bool:
        return self.screen in SWITCHING

    @property
    def ends(self) -> tuple[int, int]:
        """Return the lowest and the highest answer that is a number; of a choice the numbers of its labels."""
        if self.kind == Kind.SLIDER:
            return SLIDER_ENDS
        lowest = -(self.points // 2) if self.kind == Kind.SCALE and self.screen == Screen.PAIR else 1
        return lowest, lowest + self.points - 1

    @property
    def analysed_as(self) -> str:
        """Return the kind of its answers in an analysis."""
        return _ANALYSED_AS.get((Kind(self.kind), Screen(self.screen)), "mos")

    @property
    def title(self) -> str:
        return self.results.get("title") or self.key.replace("-", " ").capitalize()

    @property
    def question(self) -> str:
        """Return the question as results quote it."""
        return self.words("en").question

    @property
    def reading(self) -> str:
        """Return how its first table is to be read."""
        return self.results.get("reading") or (READING_OF_VOICES if self.compares_voices else READING_OF_MEANS)

    @property
    def worse(self) -> str:
        """Return what is said of a system that is rated below unprotected speech."""
        return self.results.get("worse") or "rated lower"

    @property
    def said_of_best(self) -> str:
        """Return what is said of the system that is rated highest, with its verb."""
        return self.results.get("best") or f"is rated highest for {self.title.lower()}"

    def words(self, language: str) -> Wording:
        """Return the wording in a language, else in the one without its region, in English, or in any."""
        named = (language, language.partition("-")[0], "en")
        return next((self.wording[one] for one in named if one in self.wording), next(iter(self.wording.values())))

    def has_words(self, language: str) -> bool:
        """Return whether the wording is in this language, or in the one without its region."""
        return bool({language, language.partition("-")[0]}.intersection(self.wording))

    def labels(self, language: str) -> dict[int, str]:
        """Return the words of points, from the lowest: of all of them, of the ends alone, or of none."""
        labels = self.words(language).labels
        lowest, highest = self.ends
        points = range(lowest, highest + 1) if len(labels) == self.points else (lowest, highest)
        return dict(zip(points, labels, strict=True)) if labels else {}

    def has_label_for_each_point(self, language: str) -> bool:
        return len(self.words(language).labels) == self.points

    def as_data(self) -> dict[str, Any]:
        return asdict(self) | {
            "wording": {
                language: asdict(words) | {"labels": list(words.labels)} for language, words in self.wording.items()
            }
        }


READING_OF_VOICES = (
    "The equal error rate of listeners who say whether two samples are of one speaker, both errors being equally "
    "frequent. Near 50 % they guess. The first row is the check: only where the rate of unprotected speech is low is a "
    "high one privacy, else the task was too hard."
)
READING_OF_MEANS = (
    "Mean score, higher is better. The equal error rate beside it is that of telling unprotected speech from the "
    "system by these ratings alone: near 50 % the system is rated like unprotected speech."
)


def read_question(data: Mapping[str, Any]) -> AskedQuestion:
    """Return the question in what `AskedQuestion.as_data` gave."""
    wording = {
        language: Wording(**{**words, "labels": tuple(words.get("labels", ()))})
        for language, words in data["wording"].items()
    }
    return AskedQuestion(**{**data, "wording": wording})


def parse_question(data: Mapping[str, Any], name: str) -> AskedQuestion:
    """Return the question in data from elsewhere, such as `AskedQuestion.as_data` gives.

    Args:
        name: of the file, for what is said about it.

    Raises:
        ProblemsError: the data are no question.
    """
    try:
        _check_types(data)
        found = read_question(data)
    except (AttributeError, KeyError, TypeError) as error:
        sentence = f"{name}: expected a question with a key and its wording by language, found {error}."
        raise ProblemsError(sentence) from None
    if problems := list_question_problems([found]):
        raise ProblemsError([f"{name}: {problem}" for problem in problems])
    return found


def _check_types(data: Mapping[str, Any]) -> None:
    """Raise TypeError where a part of a question is not of its type."""
    texts = [data["key"], data.get("kind", ""), data.get("screen", ""), *data.get("results", {}).values()]
    for words in data["wording"].values():
        labels = words.get("labels", ())
        if not isinstance(labels, list | tuple):
            raise TypeError(f"no list of labels, but {str(labels)[:40]!r}")
        texts += [*labels, *(value for name, value in words.items() if name != "labels")]
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"no text, but {str(text)[:40]}")
        if "\0" in text:
            raise TypeError("a text with the character U+0000")
    if type(data.get("listen_again", False)) is not bool:
        raise TypeError(f"neither true nor false, but {str(data['listen_again'])[:40]} as listen_again")


def list_question_problems(questions: Sequence[AskedQuestion]) -> list[str]:
    """Return why these questions cannot be asked together, as sentences; empty where they can."""
    problems = [] if questions else ["A listening test asks at least one question. Add one."]
    keys = [one.key for one in questions]
    problems += [
        f"Two questions are called {key}. Rename one of them." for key in dict.fromkeys(keys) if keys.count(key) > 1
    ]
    if len(questions) > MOST_QUESTIONS:
        problems.append(f"Expected at most {MOST_QUESTIONS} questions, found {len(questions)}.")
    for one in questions:
        problems += [f"{one.key or 'A question'}: {problem}" for problem in _problems(one)]
    if len(questions) > 1:
        if not {str(one.kind) for one in questions} <= {Kind.SCALE, Kind.CHOICE}:
            problems.append("Only scales and choices stand together. Ask any other question alone.")
        screens = {str(one.screen) for one in questions}
        if len(screens) > 1 and not screens <= {Screen.VOICES, Screen.SINGLE}:
            problems.append("Questions that stand together are about the same recordings. Give them the same screen.")
    return problems


def _problems(one: AskedQuestion) -> list[str]:
    problems = []
    if not KEY.fullmatch(one.key):
        problems.append("expected a key of small letters, digits and hyphens, such as naturalness.")
    if one.screen not in SCREENS.get(one.kind, ()):
        problems.append(f"a {one.kind} cannot be asked on the screen {one.screen}.")
    if type(one.points) is not int or not FEWEST_POINTS <= one.points <= MOST_POINTS:
        problems.append(f"expected {FEWEST_POINTS} to {MOST_POINTS} points, found {one.points}.")
    elif one.kind == Kind.SCALE and one.screen == Screen.PAIR and not one.points % 2:
        problems.append(f"A against B needs a middle: expected an odd number of points, found {one.points}.")
    elif one.kind == Kind.CHOICE and one.points > _MOST_CHOICES.get(one.screen, MOST_POINTS):
        problems.append(f"expected at most {_MOST_CHOICES[one.screen]} choices, found {one.points}.")
    problems += [] if one.wording else ["expected its wording in at least one language."]
    for language, words in one.wording.items():
        if not words.question.strip():
            problems.append(f"the question is empty in the language {language}. Write it, or remove the language.")
        labels, expected = len(words.labels), ""
        if one.kind == Kind.SCALE and labels not in (0, 2, one.points):
            expected = f"{one.points} points or for the two ends"
        elif one.kind == Kind.CHOICE and labels != one.points:
            expected = f"{one.points} choices"
        elif one.kind == Kind.CHOICE and len({label.strip() for label in words.labels} - {""}) < labels:
            found = ", ".join(words.labels)
            problems.append(f"expected choices that differ, found {found} in the language {language}.")
        if expected:
            problems.append(f"expected a label for each of the {expected}, found {labels} in the language {language}.")
    return problems


def find_form(questions: Iterable[AskedQuestion]) -> str:
    """Return what evaluators do on the whole.

    ``linkability`` (placing voices), ``transcription``, ``answers`` (comparisons and choices) or ``rating``.
    """
    asked = list(questions)
    kinds = {one.kind for one in asked}
    if kinds & {Kind.PLACEMENT, Kind.TEXT}:
        return "linkability" if Kind.PLACEMENT in kinds else "transcription"
    is_rating = kinds <= {Kind.SCALE} and not COMPARING.intersection(one.screen for one in asked)
    return "rating" if is_rating else "answers"


def are_crossed(questions: Iterable[AskedQuestion]) -> bool:
    """Return whether every condition is heard in every item, even of the systems of an edition.

    Where voices are compared or placed, designs know of speakers (`listening.design.allocation`, `boards`).
    """
    asked = list(questions)
    return bool(asked) and not any(one.screen in OF_CORPUS for one in asked)


def order_questions(
    asked: tuple[AskedQuestion, ...], orders: str, *, block: int, seed: int
) -> tuple[AskedQuestion, ...]:
    """Return the questions as the evaluator of a block is asked them.

    Where the first two are swapped, one of the blocks 1 and 2 has them swapped, one of 3 and 4, and so on; which one is
    drawn, so that the order goes with no condition of the design.

    Args:
        block: its number, from 1.
        seed: of the study.
    """
    if orders != Orders.SWAP_FIRST_TWO or len(asked) < FEWEST_TO_SWAP:
        return asked
    pair, place = divmod(block - 1, 2)
    first, second, *others = asked
    is_swapped = place == Random(f"{seed} {pair}").randrange(2)  # noqa: S311 - no secret
    return (second, first, *others) if is_swapped else asked


def list_slots(screen: str, conditions: int = 0) -> tuple[str, ...]:
    """Return the slots of the samples of a trial, the reference first; of `MANY` for so many conditions."""
    if screen == Screen.MANY:
        return (REFERENCE, *(str(number) for number in range(1, conditions + 1)))
    return {Screen.REFERENCE: (REFERENCE, "a"), Screen.TRIPLE: ("x", "a", "b"), Screen.SINGLE: ("a",)}.get(
        Screen(screen), ("a", "b")
    )


def slot_order(slot: str) -> tuple[int, int]:
    """Return the key by which the slots of a trial are sorted as `list_slots` names them."""
    return int(slot) if slot.isdigit() else 0, "rxab".find(slot)


# Presets -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Preset:
    """What a listening test begins with.

    Attributes:
        study: its settings that differ from the usual ones, by name.
        practice_trials: at most so many are proposed of a crossed test, as `propose_practice_trials` says.
    """

    name: str
    title: str
    about: str
    source: str
    questions: tuple[AskedQuestion, ...]
    study: Mapping[str, Any]
    practice_trials: int = 0


@cache
def list_presets() -> tuple[Preset, ...]:
    """Return the presets, by title."""
    return tuple(sorted(map(load_preset, (path.stem for path in FOLDER.glob("*.toml"))), key=lambda one: one.title))


def find_preset(questions: Iterable[AskedQuestion]) -> Preset | None:
    """Return the preset that asks the same, in whatever words; None where none does."""

    def outline(asked: Iterable[AskedQuestion]) -> list[tuple[str, str, str, int]]:
        return [(one.key, one.kind, one.screen, one.points) for one in asked]

    asked = outline(questions)
    return next((one for one in list_presets() if outline(one.questions) == asked), None)


def propose_practice_trials(questions: Iterable[AskedQuestion], items: int) -> int:
    """Return how many practice trials a new crossed test has: one for ten items, whose item is scored no more."""
    preset = find_preset(questions)
    return min(preset.practice_trials, items // ITEMS_TO_PRACTISE) if preset else 0


@cache
def load_preset(name: str) -> Preset:
    """Return a preset. `questions_of` in its file names the preset whose questions it asks, too.

    Raises:
        ProblemsError: its file does not hold one.
    """
    path = FOLDER / f"{name}.toml"
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    if "questions_of" in data:
        questions = load_preset(data["questions_of"]).questions
    else:
        questions = tuple(parse_question(one, path.name) for one in data["questions"])
    if problems := list_question_problems(questions):
        raise ProblemsError([f"{path.name}: {problem}" for problem in problems])
    told = (data["title"], data["about"], data["source"])
    return Preset(name, *told, questions, data.get("study", {}), data.get("practice_trials", 0))
