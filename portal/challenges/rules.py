"""What an edition allows at a time, and whether a recipe can be read, has the track asked for and fits a corpus.

Every rule is a function of its arguments, `now` included; each problem is one sentence. Data sets of a corpus are known
by their name, or by the directory that the recipe states; what the recipe counts or hashes must be what the corpus
holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from common.errors import ProblemsError
from evaluation.attackers.training.recipe import PRESETS
from evaluation.metrics.catalogue import find_metric
from evaluation.protocols.evaluation_table import KnownEngines
from evaluation.protocols.recipes import DataSet, Recipe, list_hash, parse_recipe
from speech.encoders import registry as encoders
from speech.recognizers import registry as recognizers

if TYPE_CHECKING:
    from portal.challenges.models import Edition

PUBLISHED = "The leaderboard of the edition was published, and published results depend on this. Archive {} instead."
SPEECH_NOTICE = timedelta(days=14)
ARCHIVED = "This edition is archived; it takes no teams and no submissions."
# The licences of speech whose text has a known address; terms may name several, as "CC-BY-4.0; CC BY-NC-SA 4.0".
_CREATIVE_COMMONS = re.compile(r"\bCC[- ]BY((?:-NC)?(?:-SA|-ND)?)[- ]([234]\.0|2\.5)(?!\.?\d)", re.IGNORECASE)
_CC0 = re.compile(r"\bCC0[- ]1\.0(?!\.?\d)", re.IGNORECASE)
_ODC_BY = re.compile(r"\bODC-By[- ]1\.0(?!\.?\d)", re.IGNORECASE)
ROLES_OF_A_CORPUS = ("enrolment", "trial", "training")


class Phase(StrEnum):
    BEFORE = "not open yet"
    OPEN = "open"
    LATE = "open for late submissions"
    CLOSED = "closed"


def registration_phase(edition: Edition, now: datetime) -> Phase:
    """Return whether teams may register; the opening belongs to the time that is open, the closing does not."""
    return Phase.CLOSED if edition.archived_at else _phase(*_times(edition, "registration"), now)


def submission_phase(edition: Edition, now: datetime) -> Phase:
    """Return whether archives are taken; from the deadline until `late_until` they are marked late."""
    return Phase.CLOSED if edition.archived_at else _phase(*_times(edition, "submissions"), now)


def submission_problem(edition: Edition, now: datetime) -> str:
    """Return why no archive is taken at this time; "" while one is, late ones included."""
    phase = submission_phase(edition, now)
    if phase is Phase.BEFORE and edition.submissions_open_at is not None:
        return f"Submissions open on {moment(edition.submissions_open_at)}."
    if edition.archived_at is not None:
        return ARCHIVED
    closed = edition.late_until or edition.submissions_close_at
    return f"Submissions closed on {moment(closed)}." if phase is Phase.CLOSED and closed is not None else ""


def describe_phase(edition: Edition, part: str, now: datetime) -> dict[str, Any]:
    """Return what `templates/editions/_phase.txt` says of a phase: its times, and how long it is until the next one.

    Args:
        part: ``registration`` or ``submissions``.
    """
    opens, closes, late = _times(edition, part)
    phase = _phase(opens, closes, late, now)
    ends = {Phase.BEFORE: opens, Phase.OPEN: closes, Phase.LATE: late}.get(phase)
    return {
        "state": phase,
        "archived_at": edition.archived_at,
        "closes": closes,
        "closed": max(filter(None, (closes, late)), default=None),
        "ends": ends,
        "left": ends - now if ends is not None else None,
    }


def speech_deletion_time(kept_until: datetime, announced_at: datetime | None) -> datetime | None:
    """Return when submitted speech may be deleted: not before `SPEECH_NOTICE` after organizers were told; None before
    that."""
    return max(kept_until, announced_at + SPEECH_NOTICE) if announced_at is not None else None


def moment(time: datetime) -> str:
    """Return a time as pages and sentences give it, in UTC."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def date_problems(dates: Mapping[str, datetime | None]) -> dict[str, str]:
    """Return what is wrong with the dates of an edition: by the name of the field, a sentence. Empty times do not
    limit."""
    problems = {}
    if _reversed(dates, "registration_opens_at", "registration_closes_at"):
        problems["registration_closes_at"] = "Registration has to close after it opens."
    if _reversed(dates, "submissions_open_at", "submissions_close_at"):
        problems["submissions_close_at"] = "The deadline has to come after submissions open."
    if dates.get("late_until") and not dates.get("submissions_close_at"):
        problems["late_until"] = "Late submissions need a deadline that they come after."
    elif _reversed(dates, "submissions_close_at", "late_until"):
        problems["late_until"] = "Late submissions have to end after the deadline."
    if dates.get("speech_kept_until"):
        if not dates.get("submissions_close_at"):
            problems["speech_kept_until"] = "Speech can only be deleted after a deadline. Set a deadline, too."
        elif any(_reversed(dates, last, "speech_kept_until") for last in ("submissions_close_at", "late_until")):
            problems["speech_kept_until"] = (
                "Speech has to be kept until the last submission is taken: give a later date."
            )
    return problems


def locked_fields(*, has_submissions: bool) -> frozenset[str]:
    """Return the fields of an edition that cannot change any more: results rest on them and addresses hold its name."""
    return frozenset({"name", "protocol", "recipe_text", "track", "corpus"}) if has_submissions else frozenset()


def propose_test_title(edition_title: str) -> str:
    """Return what a listening test of an edition is called unless its organizer says otherwise."""
    return f"Listening test of {edition_title}"[:120]


def list_licence_texts(terms: str) -> dict[str, str]:
    """Return each licence that terms of use call by a known name, as it stands there, with the address of its text."""
    texts = {
        one[0]: f"https://creativecommons.org/licenses/by{one[1].lower()}/{one[2]}/legalcode"
        for one in _CREATIVE_COMMONS.finditer(terms)
    }
    texts |= {one[0]: "https://creativecommons.org/publicdomain/zero/1.0/legalcode" for one in _CC0.finditer(terms)}
    return texts | {one[0]: "https://opendatacommons.org/licenses/by/1-0/" for one in _ODC_BY.finditer(terms)}


def _times(edition: Edition, part: str) -> tuple[datetime | None, datetime | None, datetime | None]:
    """When a part opens and closes, and until when late ones are taken."""
    if part == "registration":
        return edition.registration_opens_at, edition.registration_closes_at, None
    return edition.submissions_open_at, edition.submissions_close_at, edition.late_until


def _reversed(dates: Mapping[str, datetime | None], first: str, second: str) -> bool:
    earlier, later = dates.get(first), dates.get(second)
    return earlier is not None and later is not None and later <= earlier


def _phase(opens: datetime | None, closes: datetime | None, late_until: datetime | None, now: datetime) -> Phase:
    if opens is not None and now < opens:
        return Phase.BEFORE
    if closes is None or now < closes:
        return Phase.OPEN
    if late_until is not None and now < late_until:
        return Phase.LATE
    return Phase.CLOSED


@dataclass(frozen=True)
class HeldSet:
    """A data set as a corpus holds it."""

    role: str
    utterances: tuple[str, ...]


TITLE_LINE = re.compile(r"""^title[ \t]*=[ \t]*("(?:[^"\\\n]|\\.)*"|'[^'\n]*')""", re.MULTILINE)


def retitle_recipe(text: str, title: str) -> str:
    """Return the text of a recipe under another title; everything else stays as it was written."""
    head, table, rest = text.partition("\n[")
    return TITLE_LINE.sub(lambda _: f"title = {json.dumps(title, ensure_ascii=False)}", head, count=1) + table + rest


def read_recipe_text(text: str, *, file: str) -> Recipe:
    """Return a recipe that computes: `parse_recipe`, and every metric and engine that it names is known.

    Raises:
        ProblemsError: with a sentence for each thing that is wrong with the text.
    """
    try:
        return parse_recipe(text, file=file, metric_problem=_metric_problem, engines=known_engines())
    except ProblemsError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise ProblemsError(
            f"{file}: expected tables, lists and numbers as in the shipped recipes, found a value of another kind "
            f"({error}). Compare it with the recipe of an edition, which can be downloaded."
        ) from error


def known_engines() -> KnownEngines:
    """Return what a recipe may name as attackers, recogniser and training, whether it can run here or not."""
    return KnownEngines(tuple(encoders.engines()), tuple(recognizers.engines()), tuple(PRESETS))


def track_problem(recipe: Recipe, track: str) -> str:
    """Return why a track cannot be the one of an edition, or ""; a recipe with one track needs no name."""
    names = ", ".join(recipe.tracks)
    if track and track not in recipe.tracks:
        return f"Expected one of the recipe's tracks ({names}), found “{track}”."
    if not track and len(recipe.tracks) > 1:
        return f"The recipe has several tracks: {names}. Name the one of this edition."
    return ""


def publishes_at_once(edition: Edition) -> bool:
    """Return whether the numbers of a submission are public as soon as they are computed."""
    is_fixed = edition.frozen_at is not None or edition.recipe_changed_at is not None
    return edition.published_at is not None and not is_fixed and not edition.holds_evaluations


def contradictions(recipe: Recipe, corpus: str, held: Mapping[str, HeldSet]) -> list[str]:
    """Return where the data sets of a recipe contradict those of a corpus; a set that the corpus lacks is no
    contradiction.

    Args:
        corpus: its name, for the sentences.
        held: the data sets of the corpus by name.
    """
    wanted = [one for one in recipe.data_sets.values() if one.role in ROLES_OF_A_CORPUS]
    pairs = [(one, found) for one in wanted if (found := _held(one, held)) is not None]
    if wanted and not pairs:
        return [
            f"The corpus {corpus} holds none of the {len(wanted)} enrolment, trial and training sets of the recipe: "
            f"expected {_some(one.name for one in wanted)}, found {_some(held)}."
        ]
    return [sentence for one, found in pairs for sentence in _differences(one, found, corpus)]


def missing_sets(recipe: Recipe, held: Iterable[str]) -> list[str]:
    """Return the enrolment and trial sets of a recipe that a corpus lacks, and of training where the portal trains on
    them."""
    names = set(held)
    roles = ROLES_OF_A_CORPUS if recipe.evaluation.training else ("enrolment", "trial")
    wanted = [one for one in recipe.data_sets.values() if one.role in roles]
    return [one.name for one in wanted if not names & {one.name, one.directory}]


def _held(one: DataSet, held: Mapping[str, HeldSet]) -> HeldSet | None:
    return held.get(one.name) or held.get(one.directory)


def _differences(one: DataSet, found: HeldSet, corpus: str) -> Iterator[str]:
    place = f"The data set {one.name} of the recipe and of the corpus {corpus} differ"
    if one.role != found.role:
        yield f"{place}: expected the role {one.role}, found {found.role}."
    if one.utterances not in (None, len(found.utterances)):
        yield f"{place}: expected {one.utterances} utterances, found {len(found.utterances)}."
    elif one.id_hash and one.id_hash != (digits := list_hash(found.utterances)):
        yield f"{place}: expected utterances whose names hash to {one.id_hash}, found {digits}."


def _metric_problem(metric: str, estimator: str) -> str:
    try:
        find_metric(metric, estimator)
    except LookupError as error:
        return str(error)
    return ""


def _some(names: Iterable[str]) -> str:
    every = list(names)
    shown = ", ".join(every[:4])
    return f"{shown} and {len(every) - 4} more" if len(every) > 4 else shown or "none"
