"""Reads a corpus of any layout: which one a folder has, its draft, and the check of its audio.

`read_corpus` opens no audio. `check_utterance_audio` says what is wrong with the facts of one file, so that a job can
show progress and go on where it stopped; `check_duplicates` follows when all are known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from common.folders import find_droppings
from common.problems import Problem
from portal.intake.corpora import kaldi_directories, librispeech, manifest
from portal.intake.corpora.draft import CorpusDraft, DraftUtterance, FilePlace, Layout, empty_draft
from portal.intake.expectation import CHALLENGE_RATE_HZ
from portal.intake.speech import LONG_S, LONGEST_S, SHORTEST_S
from speech.audio.files import AudioFacts

_SHAPES = "; ".join((librispeech.SHAPE, kaldi_directories.SHAPE, manifest.SHAPE))
SHORT_S = 0.3
DURATION_TOLERANCE_S = 0.02


def detect_layout(folder: Path) -> Layout | None:
    """Return the layout of a folder, by the names of its files; None where none fits.

    ``utterances.csv`` or ``manifest.csv`` win over everything else, since somebody wrote them for
    this folder; any other CSV file counts only where nothing else fits. A folder that cannot be
    read has no layout.
    """
    try:
        return _detect(folder)
    except OSError:
        return None


def _detect(folder: Path) -> Layout | None:
    if not folder.is_dir():
        return None
    if any((folder / name).is_file() for name in manifest.USUAL_NAMES):
        return Layout.MANIFEST
    finders: dict[Layout, Callable[[Path], Any]] = {
        Layout.KALDI: kaldi_directories.find_directories,
        Layout.LIBRISPEECH: librispeech.find_librispeech,
        Layout.MANIFEST: manifest.find_manifest,
    }
    return next((layout for layout, find in finders.items() if find(folder)), None)


def read_corpus(
    folder: Path,
    layout: Layout | str | None = None,
    *,
    audio_root: Path | None = None,
    without_audio: bool = False,
    enrolment_share: float = 0.25,
) -> CorpusDraft:
    """Read the listings of a corpus and check them, all problems at once; no audio is opened.

    Args:
        folder: the folder that was given.
        layout: how to read it (a `Layout` or its value); detected by default.
        audio_root: Kaldi directories only: the folder below which the audio lies.
        without_audio: Kaldi directories only: accept that there is no audio.
        enrolment_share: share of a speaker's utterances that is enrolment where no role is given.

    Raises:
        ValueError: an unknown layout, `enrolment_share` not between 0 and 1, or an option of Kaldi directories with
            another layout.
    """
    if not 0 < enrolment_share < 1:
        raise ValueError(f"expected an enrolment share between 0 and 1, found {enrolment_share}")
    layout = None if layout is None else Layout(layout)
    try:
        draft = _read(folder, layout, audio_root, without_audio, enrolment_share)
        droppings = find_droppings(folder) if draft.utterances else []
    except OSError as error:
        place = FilePlace(str(error.filename or folder))
        return empty_draft(layout, (place.problem("not-readable/corpus", reason=error.strerror),))
    if not droppings:
        return draft
    note = FilePlace(".").problem("droppings", count=len(droppings), first=droppings[0])
    return replace(draft, problems=(*draft.problems, note))


def _read(
    folder: Path, layout: Layout | None, audio_root: Path | None, without_audio: bool, enrolment_share: float
) -> CorpusDraft:
    if not folder.is_dir():
        found = "a file" if folder.exists() else "nothing of this name"
        return _not_a_corpus(folder, layout, "missing-folder/corpus", found)
    layout = layout or _detect(folder)
    if layout is None:
        return _not_a_corpus(folder, None, "unknown-layout", _content(folder))
    if layout is Layout.KALDI:
        return kaldi_directories.read_kaldi_directories(folder, audio_root=audio_root, without_audio=without_audio)
    if audio_root or without_audio:
        raise ValueError(f"an audio root, or no audio, is for Kaldi directories, not {layout}")
    read = librispeech.read_librispeech if layout is Layout.LIBRISPEECH else manifest.read_manifest
    return read(folder, enrolment_share=enrolment_share)


def _not_a_corpus(folder: Path, layout: Layout | None, kind: str, found: str) -> CorpusDraft:
    return empty_draft(layout, (FilePlace(str(folder)).problem(kind, shapes=_SHAPES, found=found),))


def _content(folder: Path) -> str:
    names = sorted(path.name for path in folder.iterdir())
    if not names:
        return "an empty folder"
    return f"a folder of {len(names)} entries such as {', '.join(names[:3])}"


def check_utterance_audio(
    utterance: DraftUtterance, facts: AudioFacts, expected_rate: int = CHALLENGE_RATE_HZ, resample: bool = False
) -> list[Problem]:
    """Return whether a file that decodes is fit for the challenge: rate, channels, length, level."""
    place = FilePlace(utterance.file or utterance.name)
    problems = []
    if facts.rate_hz != expected_rate and not resample:
        problems.append(place.problem("wrong-rate", rate_hz=expected_rate, found_hz=facts.rate_hz))
    if facts.channels != 1:
        problems.append(place.problem("not-mono", channels=facts.channels))
    problems += _check_duration(utterance, facts.duration_s, place)
    if not facts.states_length:
        problems.append(place.problem("unstated-length"))
    if facts.is_silent:
        problems.append(place.problem("silent/corpus", peak=facts.peak))
    return problems


def _check_duration(utterance: DraftUtterance, duration_s: float, place: FilePlace) -> list[Problem]:
    bounds = (
        (duration_s < SHORTEST_S, "too-short/corpus", SHORTEST_S),
        (SHORTEST_S <= duration_s < SHORT_S, "short", SHORT_S),
        (LONG_S < duration_s <= LONGEST_S, "long", LONG_S),
        (duration_s > LONGEST_S, "too-long/corpus", LONGEST_S),
    )
    problems = [place.problem(kind, bound=bound, found_s=duration_s) for is_so, kind, bound in bounds if is_so]
    stated = utterance.duration_s
    if stated is not None and round(abs(stated - duration_s), 6) > DURATION_TOLERANCE_S:
        problems.append(place.problem("contradicting-duration", stated_s=stated, found_s=duration_s))
    return problems


def check_duplicates(sha256_by_utterance: Mapping[str, str]) -> list[Problem]:
    """Return files of the same bytes under several utterances: one warning for each such group.

    Args:
        sha256_by_utterance: `AudioFacts.sha256` of every utterance, by its name.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for utterance in sorted(sha256_by_utterance):
        groups[sha256_by_utterance[utterance]].append(utterance)
    return [
        FilePlace(names[0]).problem("same-audio", names=", ".join(names[:5]) + (" …" if len(names) > 5 else ""))
        for names in groups.values()
        if len(names) > 1
    ]
