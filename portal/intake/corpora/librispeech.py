"""A LibriSpeech tree: ``<subset>/<speaker>/<chapter>/<utterance>.flac`` beside ``*.trans.txt``.

Genders stand in ``SPEAKERS.TXT``. Every subset is a corpus ``librispeech-<subset>``; a subset named ``train-…`` is one
training set, any other is split (`split_into_sets`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from common.file_names import plain_name
from common.folders import audio_files, stated_licence
from common.problems import ProblemList
from common.text_files import read_text_file
from evaluation.formats.kaldi import read_text
from portal.intake.corpora.data_sets import finish_draft, split_into_sets, training_sets
from portal.intake.corpora.draft import (
    CorpusDraft,
    DraftDataSet,
    FilePlace,
    Layout,
    SourceRow,
    check_rows,
    empty_draft,
    note_stray_files,
)

SHAPE = "a LibriSpeech tree (<subset>/<speaker>/<chapter>/*.flac with *.trans.txt, SPEAKERS.TXT)"
_SPEAKERS = "SPEAKERS.TXT"


@dataclass(slots=True)
class _SpeakerList:
    """What ``SPEAKERS.TXT`` states: gender and place of each, and of whom a problem of the file was told.

    Attributes:
        is_read: whether the file could be read at all.
    """

    is_read: bool
    genders: dict[str, tuple[str, FilePlace]] = field(default_factory=dict)
    faulty: set[str] = field(default_factory=set)

    def told(self, speaker: str) -> frozenset[str]:
        """`SourceRow.told` of the speaker's rows."""
        return frozenset() if self.is_read and speaker not in self.faulty else frozenset({"gender"})


def find_librispeech(folder: Path) -> Path | None:
    """Return the folder of the subsets: `folder` or ``LibriSpeech`` in it; None where neither is."""
    for root in (folder, folder / "LibriSpeech"):
        if (root / _SPEAKERS).is_file() or next(root.glob("*/*/*/*.trans.txt"), None):
            return root
    return None


def read_librispeech(folder: Path, *, enrolment_share: float) -> CorpusDraft:
    """Read the tree below `folder` without opening any audio."""
    root = find_librispeech(folder)
    if root is None:
        problem = FilePlace(".").problem("not-librispeech", shape=SHAPE)
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
        listing=FilePlace(_SPEAKERS),
        licence=stated_licence(root),
        problems=problems,
    )


def _subset(root: Path, folder: Path, row: SourceRow) -> str:
    return (folder / row.file).relative_to(root).parts[0]


def _rows(folder: Path, root: Path, problems: ProblemList) -> list[SourceRow]:
    speakers = _read_speakers(folder, root / _SPEAKERS, problems)
    transcripts: dict[str, tuple[str, FilePlace]] = {}
    for path in sorted(root.glob("*/*/*/*.trans.txt")):
        name = path.relative_to(folder).as_posix()
        parsed = read_text(path, name)
        problems.keep(parsed.problems)
        chapter = plain_name(name.rpartition("/")[0])
        for (utterance, words), line in zip(parsed.content.items(), parsed.lines, strict=True):
            transcripts[f"{chapter}/{utterance}"] = words, FilePlace(name, line)
    rows, stray, heard = [], [], set()
    for file in audio_files(root):
        key = plain_name((root / file).relative_to(folder).with_suffix("").as_posix())
        if file.count("/") != 3:
            stray.append(file)
        elif key not in heard:
            heard.add(key)
            name = (root / file).relative_to(folder).as_posix()
            transcript = transcripts.get(key, ("", FilePlace(name)))
            rows.append(_row(name, root / file, transcript, FilePlace(name), speakers))
    for key, transcript in transcripts.items():
        if key not in heard:
            rows.append(_row(f"{key}.flac", None, transcript, transcript[1], speakers))
    note_stray_files(stray, FilePlace("."), problems)
    _check_folders(rows, problems)
    return rows


def _row(
    name: str, audio: Path | None, transcript: tuple[str, FilePlace], place: FilePlace, speakers: _SpeakerList
) -> SourceRow:
    path = PurePosixPath(plain_name(name))
    speaker = path.parts[-3]
    gender, gender_place = speakers.genders.get(speaker, ("", FilePlace(_SPEAKERS)))
    named, places = (path.stem, speaker, gender, transcript[0]), (place, gender_place, transcript[1])
    return SourceRow(*named, audio, name, *places, told=speakers.told(speaker))


def _check_folders(rows: list[SourceRow], problems: ProblemList) -> None:
    for row in rows:
        speaker, chapter = PurePosixPath(row.file).parts[-3:-1]
        if not row.utterance.startswith(f"{speaker}-{chapter}-"):
            lies = {"speaker": speaker, "chapter": chapter}
            problems.add(row.place.problem("wrong-folder", utterance=row.utterance, **lies))


def _read_speakers(folder: Path, path: Path, problems: ProblemList) -> _SpeakerList:
    """``<id> | <sex> | <subset> | <minutes> | <name>``; lines beginning with ``;`` are comments."""
    file = path.relative_to(folder).as_posix()
    text, text_problems = read_text_file(path, file)
    problems.keep(text_problems)
    speakers = _SpeakerList(is_read=bool(text))
    genders = speakers.genders
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.startswith(";"):
            continue
        place = FilePlace(file, number)
        fields = [field.strip() for field in line.split("|", 4)]
        if len(fields) < 3:
            speakers.faulty.add(fields[0])
            problems.add(place.problem("malformed-line/librispeech", text=line.strip()[:50]))
        elif fields[0] in genders and genders[fields[0]][0] != fields[1]:
            first, where = genders[fields[0]]
            stated = {"speaker": fields[0], "found": fields[1], "first": first, "place": where}
            problems.add(place.problem("contradicting-gender/line", **stated))
        else:
            genders[fields[0]] = fields[1], place
    return speakers
