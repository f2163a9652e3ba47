"""A listening test of recordings of one's own: from an archive to a design whose stimuli are being made."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.db import transaction

from common.errors import ProblemsError
from common.wording import name_some
from evaluation.metrics.word_errors import normalise_transcript
from listening.analysis.reading.inputs import ORIGINAL
from listening.app.models import Condition, Item, Stimulus, Study
from listening.app.recordings.archives import CONTROL, ITEMS, PRACTICE, FoundRecordings, read_recordings
from listening.app.studies.designing import draw_lot
from listening.app.studies.rules import (
    GOLD_AT_MOST,
    PRACTICE_AT_MOST,
    RATES_HZ,
    aside_problems,
    count_items_aside,
    plan_number_problems,
    read_known_answer,
)
from listening.app.studies.selectors import editions_to_study, sets_to_hear, submissions_to_hear
from listening.app.studies.services import (
    create_study,
    design_and_prepare,
    explain_missing_texts,
    make_crossed_study,
)
from listening.app.studies.sizes import choose_numbers
from listening.design.crossed import CrossedRequest, find_crossed_problems
from listening.questions import (
    NEEDS_REFERENCE,
    OF_CORPUS,
    AskedQuestion,
    Screen,
    are_crossed,
    find_form,
    list_presets,
    load_preset,
    propose_practice_trials,
)
from listening.stimuli.anchors import ANCHORS_HZ, list_anchors, name_anchor, rate_of_anchor
from listening.stimuli.making import USUAL, Loudness, find_shortest_s
from portal.challenges.models import Role
from portal.core import audit
from portal.core.storage import adopt_file, content_key
from portal.corpora.handlers import unpacking_folder
from portal.intake.archives.limits import ARCHIVE_ENDINGS, ARCHIVE_FORMATS
from portal.submissions.rules import recordings_size_problem

Kind = Condition.Kind
PRESETS = tuple(one.name for one in list_presets() if OF_CORPUS.isdisjoint(asked.screen for asked in one.questions))
USUAL_PRESET, USUAL_LOUDNESS = "mos", Loudness.PROGRAMME


@dataclass(frozen=True)
class OwnTest:
    """What is chosen for a test; what is left out follows from the recordings.

    Attributes:
        study: fields of its `Study`, name and title among them.
        asked: the questions, of the preset or instead of them.
        preset: of `PRESETS`, by which the study differs from the usual one.
        original: the condition with which the others are compared, and which a trial plays as its reference.
        references: conditions that are references.
        anchors: frequencies in Hz at which the original is low-passed for a further condition, of `ANCHORS_HZ`; those
            that the sampling rate can have where all conditions are heard at once, else none.
        edition, systems, data_sets: instead of an archive, what is heard by their names; all systems and the trial sets
            of one subset where none are named.
        texts: by kind and language, instead of those that are shipped.
        sent: what was chosen, as the form of it took it.
    """

    study: Mapping[str, Any]
    asked: tuple[AskedQuestion, ...]
    preset: str = USUAL_PRESET
    original: str = ""
    references: tuple[str, ...] = ()
    anchors: tuple[int, ...] | None = None
    edition: str = ""
    systems: tuple[str, ...] = ()
    data_sets: tuple[str, ...] = ()
    texts: Mapping[tuple[str, str], str] = field(default_factory=dict)
    sent: Mapping[str, Any] = field(default_factory=dict)

    @property
    def against(self) -> str:
        """Return the condition with which alone each other one is compared in pairs; empty for all with each other."""
        return str(self.study.get("against", ""))

    @property
    def screen(self) -> Screen:
        return Screen(self.asked[0].screen)

    @property
    def is_written(self) -> bool:
        """Return whether evaluators write down what they hear: nobody shall hear the same words twice."""
        return find_form(self.asked) == Study.Form.TRANSCRIPTION


def make_test(*, chosen: OwnTest, archive: UploadedFile | None, by: Any) -> Study:
    """Make a test of the recordings in an archive, or of systems, design it and start making its stimuli.

    What chose systems before leads to the test that was made of it.

    Args:
        archive: None for the systems of an edition.

    Raises:
        ProblemsError: with every reason for which the archive, or what is chosen, cannot be used.
        ValidationError: the name or the title is taken.
        NotPossible: a submission is being deleted.
    """
    if chosen.edition and archive is None:
        return _make_test_of_systems(chosen, by)
    if chosen.edition or archive is None:
        found = "both" if archive else "neither"
        raise ProblemsError(
            [f"Expected an archive of recordings, or an edition in the file of the test, found {found}."]
        )
    file_name = archive.name or ""
    check_archive(file_name, archive.size or 0)
    with unpacking() as folder:
        path = folder / "archive"
        with path.open("wb") as file:
            shutil.copyfileobj(archive, file, 1 << 20)
        return make_own_test(chosen=chosen, archive=path, file_name=file_name, by=by)


def _make_test_of_systems(chosen: OwnTest, by: Any) -> Study:
    edition = editions_to_study(by).filter(name=chosen.edition).first()
    if edition is None:
        raise ProblemsError([f"{chosen.edition}: expected an edition with a corpus that you organise."])
    if not are_crossed(chosen.asked):
        raise ProblemsError(["A test of systems about voices is made on the page “New listening test” alone."])
    if made := edition.studies.filter(created_by=by, archived_at=None, recordings={"test": chosen.sent}).first():
        return made
    known = {str(one.system): one for one in submissions_to_hear(edition)}
    sets = {one.name: one for one in sets_to_hear(edition) if one.role == Role.TRIAL}
    problems = [
        f"{one}: there is no such {what} to be heard; there are: {', '.join(names) or 'none'}."
        for what, names, wanted in (("system", known, chosen.systems), ("trial set", sets, chosen.data_sets))
        for one in wanted
        if one not in names
    ]
    if chosen.original not in ("", ORIGINAL) or chosen.references:
        problems.append(f"Of an edition the original is called “{ORIGINAL}”, and there are no other references.")
    possible = list_anchors(USUAL.rate_hz)
    anchors = chosen.anchors if chosen.anchors is not None else possible if chosen.screen == Screen.MANY else ()
    if not set(anchors) <= set(possible):
        problems.append(f"Stimuli of {USUAL.rate_hz:,} Hz have the anchors {', '.join(map(str, possible))} alone.")
    if {"rate_hz", "channels", "loudness"} & chosen.study.keys():
        problems.append("[sound]: systems of an edition are always heard in mono, at one rate and one speech level.")
    if problems:
        raise ProblemsError(problems)
    return make_crossed_study(
        edition=edition,
        by=by,
        questions=chosen.asked,
        systems=[known[one] for one in chosen.systems],
        data_sets=[sets[one] for one in chosen.data_sets],
        further=[*filter(None, [chosen.original]), *map(name_anchor, anchors)],
        own_texts=chosen.texts,
        recordings={"test": chosen.sent},
        **{**load_preset(chosen.preset).study, **chosen.study},
    )


def check_archive(file_name: str, size: int) -> None:
    """Refuse an archive of own recordings before it is read, or sent.

    Raises:
        ProblemsError: with every reason.
    """
    is_archive = file_name.lower().endswith(ARCHIVE_ENDINGS)
    problems = ["" if is_archive else f"Expected an archive ({ARCHIVE_FORMATS}), found {file_name[:80]}."]
    if found := [*filter(None, [*problems, recordings_size_problem(size)])]:
        raise ProblemsError(found)


def make_own_test(*, chosen: OwnTest, archive: Path, file_name: str, by: Any, upload: str = "") -> Study:
    """Make a test of the recordings in an archive on this machine; arguments and errors as of `make_test`.

    Args:
        file_name: of the archive as its owner knows it.
        upload: by which it came, if it did; kept with the test.
    """
    told = {"archive": file_name[:200]} | ({"upload": upload} if upload else {})
    with unpacking() as unpacked:
        found = read_recordings(archive, file_name, unpacked)
        problems = list(_find_unknown(chosen, found.conditions))
        if chosen.is_written:
            problems += explain_missing_texts(one for one in found.common_items if not found.describe(one).transcript)
        problems += _find_unusable(chosen, found)
        if problems:
            raise ProblemsError(problems)
        planned = _plan_sound(chosen, found)
        anchors, left_out = _choose_anchors(chosen, found, planned["rate_hz"])
        planned |= _plan_numbers(chosen, found, anchors)
        numbers = {**chosen.study, **planned, "asked": chosen.asked, "has_own_recordings": True}
        if wrong := plan_number_problems(numbers):
            raise ProblemsError(list(chain.from_iterable(wrong.values())))
        warnings = [*found.warnings, *left_out]
        with transaction.atomic():
            study = create_study(
                edition=None,
                by=by,
                recordings=told | {"original": chosen.original, "warnings": warnings},
                questions=chosen.asked,
                own_texts=chosen.texts,
                **{**load_preset(chosen.preset).study, **chosen.study, **planned},
            )
            _write_rows(study, chosen, found, anchors, unpacked)
            audit.record("study.recordings_added", study, actor=by, file=file_name[:200], files=len(found.recordings))
    design_and_prepare(study, by)
    return study


def _find_unusable(chosen: OwnTest, found: FoundRecordings) -> Iterator[str]:
    """Yield which recordings are too short, which right answers are none, and what is wrong with unscored trials."""
    shortest_s = find_shortest_s(chosen.study.get("loudness", USUAL_LOUDNESS))
    if short := [f"{one.condition}/{one.item}" for one in found.recordings if one.seconds < shortest_s]:
        yield f"{name_some(short)}: expected at least {shortest_s:g} s of sound. Leave them out, or keep the levels."
    labels = chosen.asked[0].labels("en").values() if chosen.asked[0].analysed_as == "choice" else ()
    for item in found.common_items if labels else ():
        if (answer := found.describe(item).answer) and answer not in labels:
            yield f"{ITEMS}: expected the right answer to {item} as one of {', '.join(labels)}, found {answer}."
    for purpose, most in ((PRACTICE, PRACTICE_AT_MOST), (CONTROL, GOLD_AT_MOST)):
        items = found.items_for(purpose)
        if items and (chosen.screen != Screen.SINGLE or chosen.is_written):
            yield f"{purpose}: only tests that rate or label single recordings have this folder. Leave it out."
        elif len(items) > most:
            yield f"{purpose}: expected at most {most} recordings, found {len(items)}."
        elif purpose == CONTROL:
            lowest, highest = chosen.asked[0].ends
            expected = f"a number from {lowest} to {highest}, or two such as {highest - 1}-{highest}"
            expected = f"one of {', '.join(labels)}" if labels else expected
            yield from (
                f"{ITEMS}: expected the right answer to {one} as {expected}, found {found.describe(one).answer}."
                for one in items
                if not read_known_answer(chosen.asked[0], found.describe(one).answer)
            )


def _find_unknown(chosen: OwnTest, conditions: Collection[str]) -> Iterator[str]:
    wanted = {*chosen.references, *filter(None, [chosen.original, chosen.against])}
    unknown = sorted(wanted - {*conditions, *map(name_anchor, ANCHORS_HZ)})
    if unknown:
        yield f"There is no condition {name_some(unknown)} in the archive; there are: {', '.join(conditions)}."
    if chosen.original != ORIGINAL and ORIGINAL in conditions:
        yield f"A folder is called “{ORIGINAL}”, and is not chosen as the original. Choose it, or give it another name."
    yield from find_original_problems(chosen)


def find_original_problems(chosen: OwnTest) -> Iterator[str]:
    """Yield what is wrong with the choice of the original, whatever the archive holds."""
    if chosen.original in chosen.references:
        yield f"{chosen.original} cannot be the original and a reference. Choose one of the two."
    if not chosen.original and chosen.screen in NEEDS_REFERENCE:
        yield "Every trial plays a reference. Name the condition that is the original."
    if not chosen.original and chosen.anchors:
        yield "Anchors are made from the original. Name the condition that is the original."


def _plan_sound(chosen: OwnTest, found: FoundRecordings) -> dict[str, Any]:
    """Return how all stimuli sound where nobody chose it."""
    rates = Counter(one.rate_hz for one in found.recordings)
    usual = rates.most_common(1)[0][0]
    planned = {
        "rate_hz": next((one for one in RATES_HZ if one >= usual), RATES_HZ[-1]),
        "channels": max(one.channels for one in found.recordings),
        "loudness": USUAL_LOUDNESS,
    }
    return {name: chosen.study.get(name) or value for name, value in planned.items()}


def _choose_anchors(chosen: OwnTest, found: FoundRecordings, rate_hz: int) -> tuple[list[int], list[str]]:
    """Return the frequencies of anchors, and a sentence about each that would be usual and cannot be made.

    Raises:
        ProblemsError: one that was chosen cannot be made.
    """
    usual = ANCHORS_HZ if chosen.screen == Screen.MANY else ()
    anchors, problems = [], []
    lowest_hz = min([rate_hz, *(one.rate_hz for one in found.recordings if one.condition == chosen.original)])
    for low_pass_hz in usual if chosen.anchors is None else chosen.anchors:
        name = name_anchor(low_pass_hz)
        if name in found.conditions:
            problems.append(f"{name} is already a condition of the archive, so this anchor is not made.")
        elif lowest_hz < rate_of_anchor(low_pass_hz):
            problems.append(
                f"{name} cannot be made: the original and the stimuli have {lowest_hz:,} Hz, expected at least "
                f"{rate_of_anchor(low_pass_hz):,} Hz."
            )
        else:
            anchors.append(low_pass_hz)
    if problems and chosen.anchors is not None:
        raise ProblemsError([f"{sentence} Choose other anchors, or none." for sentence in problems])
    return anchors, problems


def _plan_numbers(chosen: OwnTest, found: FoundRecordings, anchors: Collection[int]) -> dict[str, Any]:
    """Return evaluators and trials where nobody chose them.

    Raises:
        ProblemsError: no design can be made of these conditions and numbers.
    """
    codes = (*(_condition(name, chosen)[0] for name in found.conditions), *map(name_anchor, anchors))
    own = len(found.items_for(PRACTICE)), len(found.items_for(CONTROL))
    common = found.common_items
    if chosen.is_written:  # one of each text
        texts = {normalise_transcript(found.describe(one).transcript).strip(): one for one in common}
        common = [one for text, one in texts.items() if text]
    proposed = 0 if own[0] else propose_practice_trials(chosen.asked, len(common))
    practice = chosen.study.get("practice_trials", proposed)
    unscored = {
        "practice_trials": max(practice, own[0]),
        "gold_trials": max(chosen.study.get("gold_trials", 0), own[1]),
    }
    made = unscored["practice_trials"] - own[0], unscored["gold_trials"] - own[1]
    if problems := aside_problems(chosen.asked, *made, len(common)):
        raise ProblemsError(problems)
    items = tuple(common[count_items_aside(chosen.asked, *made) :][: chosen.study.get("items_at_most")])
    against = _condition(chosen.against, chosen)[0] if chosen.against else None
    request = CrossedRequest(0, 0, codes, items, 0, chosen.screen, chosen.is_written, against)
    evaluators, trials = choose_numbers(request)
    evaluators = chosen.study.get("evaluators") or evaluators
    trials = chosen.study.get("trials_per_evaluator") or trials
    if problems := find_crossed_problems(replace(request, evaluators=evaluators, trials=trials)):
        raise ProblemsError(problems)
    none = {"originals_per_evaluator": 0, "bridge_trials": 0}
    return none | unscored | {"evaluators": evaluators, "trials_per_evaluator": trials}


def _write_rows(study: Study, chosen: OwnTest, found: FoundRecordings, anchors: Collection[int], folder: Path) -> None:
    """Write conditions, items and stimuli, and keep the recordings under the names of their content."""
    conditions = {
        name: Condition(study=study, code=code, kind=kind)
        for name in sorted({one.condition for one in found.recordings})
        for code, kind in [_condition(name, chosen)]
    }
    made = [Condition(study=study, code=name_anchor(hz), kind=Kind.ANCHOR, low_pass_hz=hz) for hz in anchors]
    Condition.objects.bulk_create([*conditions.values(), *made])
    names = sorted({one.item for one in found.recordings})
    items = {name: Item(study=study, name=name, **asdict(found.describe(name))) for name in names}
    Item.objects.bulk_create(items.values())
    stimuli = []
    for one in found.recordings:
        key = content_key(one.sha256, PurePosixPath(one.path).suffix.lower())
        adopt_file(folder / one.path, key)
        heard: dict[str, Any] = {"study": study, "item": items[one.item], "source": key, "duration_s": one.seconds}
        stimuli.append(Stimulus(condition=conditions[one.condition], upload=key, **heard))
        if one.condition == chosen.original:
            stimuli += [Stimulus(condition=anchor, **heard) for anchor in made]
    # Organizers see the numbers of the rows while the study is open: their order must not tell the conditions.
    Stimulus.objects.bulk_create(sorted(stimuli, key=lambda one: draw_lot(study, one.condition.code, one.item.name)))


def _condition(name: str, chosen: OwnTest) -> tuple[str, str]:
    if name == chosen.original:
        return "", Kind.ORIGINAL
    if name in (PRACTICE, CONTROL):
        return name, Kind.PRACTICE if name == PRACTICE else Kind.CONTROL
    return name, Kind.REFERENCE if name in chosen.references else Kind.FOLDER


@contextmanager
def unpacking() -> Iterator[Path]:
    """Yield a folder that is gone afterwards, on the disk of the portal's files, so that these need not be copied."""
    place = unpacking_folder()
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place) as folder:
        yield Path(folder)
