"""Ratings in the form of the Voice Conversion Challenge 2020, told by their header; converted voices, not anonymised.

Naturalness: ``quality``, one sample; unprotected speech is ``ref``, natural speech of the target speakers.

Verifiability: ``similarity``, a sample against a natural reference of the target speaker. A pair is a *target* where
the voice that the sample claims is the voice of the reference, a *nontarget* where it is not. Converted speech always
claims the speaker of its reference, so such systems have targets only: no DET curve of their own, but means. Natural
speech has both: ``ref`` against another recording of the same speaker is a target of the originals; unconverted speech
of the source speaker against the target speaker (``team34_…``) is natural too, claims nobody else's voice, and becomes
a nontarget of the originals, where its name tells two different speakers. That makes the sanity anchor of listening.

Names are ``<system>-<target speaker>_<source speaker>_<sentence>``, or ``ref-<target speaker>_<sentence>``. Utterances
are the part after the system, which all systems share; the speaker is the source speaker, or the one of the reference.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from listening.analysis.inputs import ORIGINAL, RATED, SCORED, Floats, Inputs, Ratings, StudyFacts, Texts
from listening.analysis.reading import ReadOptions, Scale, flags_of, outside_scale, rated_lines
from listening.analysis.text_tables import Faults, TextTable, floats_of, found_at, mapped, number_in

COLUMNS = ("task", "listener", "sex", "age", "native", "valid", "system", "sample", "reference", "score")
_NEEDED = ("task", "listener", "valid", "system", "sample", "reference", "score")
_TASKS = {"quality": "naturalness", "similarity": "verifiability"}
_SCALE: Scale = {"naturalness": (1.0, 5.0), "verifiability": (1.0, 4.0)}
_NATURAL = "ref"
_CONVERTED = re.compile(r"(?:.*-)?(?P<target>[^_-]+)_(?P<source>[^_-]+)_[^_]+")
_OF_ONE = re.compile(r"(?:.*-)?(?P<target>[^_-]+)_[^_]+")
_GENDER = re.compile(r"[A-Z]{2}([FM])\d+\Z")
_ATTRIBUTION = (
    "Form of the listening test of the Voice Conversion Challenge 2020: Zhao, Huang, Tian, Yamagishi, Das, Kinnunen, "
    "Ling and Toda; its ratings are under CC BY 4.0, DOI 10.21437/VCC_BC.2020-14 and 10.21437/VCC_BC.2020-15."
)


@dataclass(frozen=True, slots=True)
class _Sample:
    """What the name of a sample says: `claimed` voice, `speaker` who spoke; empty where it does not say."""

    utterance: str
    claimed: str
    speaker: str


def is_vcc2020(table: TextTable) -> bool:
    """Whether the header is of this form; its columns may stand in any order, those about listeners may be missing."""
    return set(_NEEDED) <= set(table.columns)


def vcc2020_inputs(table: TextTable, options: ReadOptions) -> Inputs:
    """The ratings of a table for which `is_vcc2020` holds.

    Raises:
        AnalysisInputError: lines of it cannot be read; one sentence for each.
    """
    rated, left_out = rated_lines(table, table.columns["score"])
    table = table.take(rated) if left_out else table
    faults = Faults(table.name)
    cells = table.columns
    called = options.original or _NATURAL
    task = mapped(cells["task"], lambda cell: _TASKS.get(cell.lower()))
    score = mapped(cells["score"], number_in)
    for column, values, expected in (("task", task, "quality or similarity"), ("score", score, "a number as score")):
        bad = [row for row, one in enumerate(values) if one is None]
        faults.add_lines(expected, found_at(table, cells[column], bad), "Correct the line.")
    for column in ("listener", "system", "sample"):
        bad = [row for row, cell in enumerate(cells[column]) if not cell]
        faults.add_lines(f"a {column}", found_at(table, cells[column], bad), "Fill the cell.")
    bad = [row for row, one in enumerate(task) if one == "verifiability" and not cells["reference"][row]]
    faults.add_lines("a reference for similarity", found_at(table, cells["reference"], bad), "Fill the cell.")
    if called not in set(cells["system"]) and options.original:
        listed = ", ".join(sorted(set(cells["system"]))[:20])
        faults.add(f"a system named “{called}”", listed, "Say which of these is unprotected speech.")
    is_valid = flags_of(cells["valid"], table, "valid", faults)
    faults.raise_any()
    tasks, rating = np.array(task, np.str_), floats_of(score)
    scale = _scale(tasks, options)
    outside_scale(table, cells["score"], tasks, rating, scale, faults)
    faults.raise_any()
    ratings, remarks = _ratings(table, tasks, rating, is_valid, called, options.unconverted)
    design = {
        "read_from": Path(table.name).name, "form": "Voice Conversion Challenge 2020", "remarks": remarks + left_out,
    }  # fmt: skip
    facts = StudyFacts(
        options.study, options.title, "rating", tuple(one for one in RATED if one in scale), scale,
        labels={ORIGINAL: f"natural speech ({called})"}, attribution=_ATTRIBUTION, design=design,
    )  # fmt: skip
    return Inputs(facts, ratings=ratings)


def _scale(tasks: Texts, options: ReadOptions) -> Scale:
    given = options.scale
    ends = dict.fromkeys(RATED, given) if isinstance(given, tuple) else {**_SCALE, **(given or {})}
    return {one: ends[one] for one in RATED if (tasks == one).any()}


def _ratings(
    table: TextTable, task: Texts, rating: Floats, is_valid: np.ndarray, called: str, unconverted: str
) -> tuple[Ratings, list[str]]:
    cells = table.columns
    samples = mapped(cells["sample"], _parsed)
    voices = [one.claimed for one in mapped(cells["reference"], _parsed)]
    is_pair = task == "verifiability"
    bare = mapped(cells["system"], lambda cell: bool(unconverted) and cell.split("_")[0] == unconverted)
    is_bare = np.array(bare, np.bool_) & is_pair & np.array([_tells_two(one) for one in samples], np.bool_)
    is_original = np.array(mapped(cells["system"], lambda cell: cell == called), np.bool_)
    claimed = np.where(is_bare, [one.speaker for one in samples], [one.claimed for one in samples])
    is_known = (claimed != "") & (np.array(voices, np.str_) != "") & is_pair
    is_target = np.where(is_known, claimed == np.array(voices, np.str_), -1).astype(np.int64)
    system = np.where(is_original | is_bare, ORIGINAL, np.array(cells["system"], np.str_)).astype(np.str_)
    enrolment = np.where(is_pair, np.array(cells["reference"], np.str_), "").astype(np.str_)
    item = np.array(_joined(cells["sample"], enrolment.tolist()), np.str_)
    speaker = [one.speaker for one in samples]
    made = Ratings(
        listener=np.array(cells["listener"], np.str_),
        session=np.array(cells["listener"], np.str_),
        task=task,
        system=system,
        is_target=is_target,
        item=item,
        utterance=np.array([one.utterance for one in samples], np.str_),
        enrolment=enrolment,
        speaker=np.array(speaker, np.str_),
        gender=np.array(mapped(speaker, _gender), np.str_),
        rating=rating,
        position=np.zeros(len(table), np.int64),
        purpose=np.full(len(table), SCORED),
        is_finished=np.ones(len(table), np.bool_),
        excluded=np.where(is_valid, "", "not counted by the organizers of the test (valid is 0)").astype(np.str_),
    )
    return made, _remarks(made, is_bare, called, unconverted, sum(not one.speaker for one in samples))


def _remarks(made: Ratings, is_bare: np.ndarray, called: str, unconverted: str, unnamed: int) -> list[str]:
    said = [
        "Ratings of converted voices: quality is read as naturalness, similarity as verifiability. Original is natural "
        f"speech of the target speakers ({called})."
    ]
    is_pair = made.task == "verifiability"
    if is_bare.any():
        said.append(
            f"Verifiability: {is_bare.sum():,} ratings of unconverted source speech ({unconverted}) against the target "
            "speaker are the nontargets of natural speech; for naturalness it stands as a system of its own."
        )
    elif is_pair.any():
        said.append(
            "Verifiability: no unconverted source speech is named, so natural speech has targets only and there is no "
            "sanity anchor."
        )
    is_other = is_pair & (made.system != ORIGINAL)
    if is_other.any() and not (made.is_target[is_other] == 0).any():
        said.append(
            "Verifiability: every converted sample claims the voice of its reference, so systems have targets only: "
            "means, but no DET curve or equal error rate."
        )
    if not (made.system == ORIGINAL).any():
        said.append(f"No system is named {called}, so nothing is compared with natural speech.")
    if unnamed:
        said.append(f"The names of {unnamed:,} samples do not tell their speakers; their utterance is the whole name.")
    return said


def _parsed(name: str) -> _Sample:
    if found := _CONVERTED.fullmatch(name):
        return _Sample(name[found.start("target") :], found["target"], found["source"])
    if found := _OF_ONE.fullmatch(name):
        return _Sample(name[found.start("target") :], found["target"], found["target"])
    return _Sample(name, "", "")


def _tells_two(sample: _Sample) -> bool:
    return bool(sample.speaker) and sample.speaker != sample.claimed


def _gender(speaker: str) -> str:
    """The third letter of speakers such as SEF1 or TGM1."""
    found = _GENDER.match(speaker)
    return found[1].lower() if found else ""


def _joined(samples: Sequence[str], references: Sequence[str]) -> list[str]:
    return [f"{one}/{other}" if other else one for one, other in zip(samples, references, strict=True)]
