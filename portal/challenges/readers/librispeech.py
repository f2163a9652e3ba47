"""A LibriSpeech tree: ``<subset>/<speaker>/<chapter>/<utterance>.flac`` beside ``*.trans.txt``.

Genders come from ``SPEAKERS.TXT``. Every subset is a corpus ``librispeech-<subset>``; a subset
named ``train-…`` is one training set, any other is split (`split_into_sets`).
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from evaluation.formats.kaldi import read_text
from evaluation.formats.problem_list import ProblemList
from evaluation.formats.text_files import read_text_file
from portal.challenges.readers.data_sets import finish_draft, split_into_sets, training_sets
from portal.challenges.readers.draft import CorpusDraft, DraftDataSet, Layout, empty_draft
from portal.challenges.readers.folders import audio_files, stated_licence
from portal.challenges.readers.rows import (
    Place,
    SourceRow,
    SpeakerList,
    check_rows,
    note_stray_files,
)

SHAPE = "a LibriSpeech tree (<subset>/<speaker>/<chapter>/*.flac with *.trans.txt, SPEAKERS.TXT)"
_SPEAKERS = "SPEAKERS.TXT"


def find_root(folder: Path) -> Path | None:
    """The folder of the subsets: `folder` or ``LibriSpeech`` in it; None where neither is."""
    for root in (folder, folder / "LibriSpeech"):
        if (root / _SPEAKERS).is_file() or next(root.glob("*/*/*/*.trans.txt"), None):
            return root
    return None


def read_librispeech(folder: Path, *, enrolment_share: float) -> CorpusDraft:
    """Read the tree below `folder` without opening any audio."""
    root = find_root(folder)
    if root is None:
        problem = Place(".").problem("not-librispeech", SHAPE, "none", "Name its top folder.")
        return empty_draft(Layout.LIBRISPEECH, (problem,))
    problems = ProblemList()
    rows = _rows(folder, root, problems)
    checked = check_rows(rows, problems)
    genders = {speaker.name: speaker.gender for speaker in checked[0]}
    subset_of = {row.utterance: _subset(root, folder, row) for row in rows}
    data_sets: list[DraftDataSet] = []
    for subset in sorted(set(subset_of.values())):
        corpus = f"librispeech-{subset}"
        members = [each for each in checked[1] if subset_of[each.name] == subset]
        if subset.startswith("train"):
            data_sets += training_sets(corpus, members)
        else:
            data_sets += split_into_sets(corpus, members, genders, enrolment_share=enrolment_share)
    return finish_draft(
        Layout.LIBRISPEECH,
        checked,
        data_sets,
        listing=Place(_SPEAKERS),
        licence=stated_licence(root),
        problems=problems,
    )


def _subset(root: Path, folder: Path, row: SourceRow) -> str:
    return (folder / row.file).relative_to(root).parts[0]


def _rows(folder: Path, root: Path, problems: ProblemList) -> list[SourceRow]:
    speakers = _read_speakers(folder, root / _SPEAKERS, problems)
    transcripts: dict[str, tuple[str, Place]] = {}
    for path in sorted(root.glob("*/*/*/*.trans.txt")):
        name = path.relative_to(folder).as_posix()
        parsed = read_text(path, name)
        problems.keep(parsed.problems)
        chapter = name.rpartition("/")[0]
        for (utterance, words), line in zip(parsed.content.items(), parsed.lines, strict=True):
            transcripts[f"{chapter}/{utterance}"] = words, Place(name, line)
    rows, stray, heard = [], [], set()
    for file in audio_files(root):
        key = (root / file).relative_to(folder).with_suffix("").as_posix()
        if file.count("/") != 3:
            stray.append(file)
        elif key not in heard:
            heard.add(key)
            name = (root / file).relative_to(folder).as_posix()
            transcript = transcripts.get(key, ("", Place(name)))
            rows.append(_row(name, root / file, transcript, Place(name), speakers))
    for key, transcript in transcripts.items():
        if key not in heard:
            rows.append(_row(f"{key}.flac", None, transcript, transcript[1], speakers))
    note_stray_files(stray, Place("."), problems)
    _check_folders(rows, problems)
    return rows


def _row(
    name: str,
    audio: Path | None,
    transcript: tuple[str, Place],
    place: Place,
    speakers: SpeakerList,
) -> SourceRow:
    path = PurePosixPath(name)
    speaker = path.parts[-3]
    gender, gender_place = speakers.genders.get(speaker, ("", Place(_SPEAKERS)))
    return SourceRow(
        path.stem,
        speaker,
        gender,
        transcript[0],
        audio,
        name,
        place,
        gender_place,
        transcript[1],
        told=speakers.told(speaker),
    )


def _check_folders(rows: list[SourceRow], problems: ProblemList) -> None:
    for row in rows:
        speaker, chapter = PurePosixPath(row.file).parts[-3:-1]
        if not row.utterance.startswith(f"{speaker}-{chapter}-"):
            expected = f"an utterance {speaker}-{chapter}-…"
            remedy = "Move it to the folder of its speaker and chapter, or rename it."
            problems.add(row.place.problem("wrong-folder", expected, row.utterance, remedy))


def _read_speakers(folder: Path, path: Path, problems: ProblemList) -> SpeakerList:
    """``<id> | <sex> | <subset> | <minutes> | <name>``; lines beginning with ``;`` are comments."""
    file = path.relative_to(folder).as_posix()
    text, faults = read_text_file(path, file)
    problems.keep(faults)
    speakers = SpeakerList(is_read=bool(text))
    genders = speakers.genders
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.startswith(";"):
            continue
        place = Place(file, number)
        fields = [field.strip() for field in line.split("|", 4)]
        if len(fields) < 3:
            speakers.faulty.add(fields[0])
            found, remedy = f"“{line.strip()[:50]}”", "Correct the line."
            problems.add(place.problem("malformed-line", "“<id> | F or M | <subset> | …”", found, remedy))
        elif fields[0] in genders and genders[fields[0]][0] != fields[1]:
            found = f"“{fields[1]}” after “{genders[fields[0]][0]}” in {genders[fields[0]][1]}"
            expected = f"one gender for speaker {fields[0]}"
            problems.add(place.problem("contradicting-gender", expected, found, "Correct one of the two."))
        else:
            genders[fields[0]] = fields[1], place
    return speakers
