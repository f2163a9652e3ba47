"""Corpora as trees of folders: LibriSpeech and VCTK.

LibriSpeech is ``<subset>/<speaker>/<chapter>/<utterance>.flac`` beside ``*.trans.txt``, with genders in
``SPEAKERS.TXT``. Every subset is a corpus ``librispeech-<subset>``; a subset named ``train-…`` is one training set, any
other is split (`split_into_sets`).

VCTK is ``wav48_silence_trimmed/p234/p234_063_mic2.flac``, or ``wav48``, ``wav16``. Of each sentence the second
microphone is taken, as in the challenge, else what there is. Sentences 001 to 024 are read by everyone and become the
*common* trials; of the others `split_into_sets` makes enrolment and *different* trials. Without sentences from 025 on
there are no common ones.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from common.file_names import plain_name
from common.folders import audio_files, stated_licence
from common.problems import ProblemList, has_errors
from common.text_files import read_text_file
from evaluation.formats.kaldi import read_text
from portal.intake.corpora.data_sets import finish_draft, split_into_sets, training_sets
from portal.intake.corpora.draft import (
    CorpusDraft,
    DraftDataSet,
    FilePlace,
    Layout,
    SourceRow,
    SpeakerList,
    check_rows,
    empty_draft,
    note_stray_files,
)

LIBRISPEECH_SHAPE = "a LibriSpeech tree (<subset>/<speaker>/<chapter>/*.flac with *.trans.txt, SPEAKERS.TXT)"
_LIBRISPEECH_SPEAKERS = "SPEAKERS.TXT"
VCTK_SHAPE = "a VCTK tree (wav48_silence_trimmed, wav48 or wav16 beside txt and speaker-info.txt)"
LAST_COMMON_SENTENCE = 24
_AUDIO_FOLDERS = ("wav48_silence_trimmed", "wav48", "wav16")
_VCTK_SPEAKERS = "speaker-info.txt"
_UTTERANCE = re.compile(r"(?P<speaker>[a-z]\d+)_(?P<sentence>\d{3})(?:_(?P<microphone>mic\d))?")


def find_librispeech(folder: Path) -> Path | None:
    """The folder of the subsets: `folder` or ``LibriSpeech`` in it; None where neither is."""
    for root in (folder, folder / "LibriSpeech"):
        if (root / _LIBRISPEECH_SPEAKERS).is_file() or next(root.glob("*/*/*/*.trans.txt"), None):
            return root
    return None


def read_librispeech(folder: Path, *, enrolment_share: float) -> CorpusDraft:
    """Read the tree below `folder` without opening any audio."""
    root = find_librispeech(folder)
    if root is None:
        problem = FilePlace(".").problem("not-librispeech", shape=LIBRISPEECH_SHAPE)
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
        listing=FilePlace(_LIBRISPEECH_SPEAKERS),
        licence=stated_licence(root),
        problems=problems,
    )


def _subset(root: Path, folder: Path, row: SourceRow) -> str:
    return (folder / row.file).relative_to(root).parts[0]


def _rows(folder: Path, root: Path, problems: ProblemList) -> list[SourceRow]:
    speakers = _read_librispeech_speakers(folder, root / _LIBRISPEECH_SPEAKERS, problems)
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
            rows.append(_librispeech_row(name, root / file, transcript, FilePlace(name), speakers))
    for key, transcript in transcripts.items():
        if key not in heard:
            rows.append(_librispeech_row(f"{key}.flac", None, transcript, transcript[1], speakers))
    note_stray_files(stray, FilePlace("."), problems)
    _check_folders(rows, problems)
    return rows


def _librispeech_row(
    name: str, audio: Path | None, transcript: tuple[str, FilePlace], place: FilePlace, speakers: SpeakerList
) -> SourceRow:
    path = PurePosixPath(plain_name(name))
    speaker = path.parts[-3]
    gender, gender_place = speakers.genders.get(speaker, ("", FilePlace(_LIBRISPEECH_SPEAKERS)))
    named, places = (path.stem, speaker, gender, transcript[0]), (place, gender_place, transcript[1])
    return SourceRow(*named, audio, name, *places, told=speakers.told(speaker))


def _check_folders(rows: list[SourceRow], problems: ProblemList) -> None:
    for row in rows:
        speaker, chapter = PurePosixPath(row.file).parts[-3:-1]
        if not row.utterance.startswith(f"{speaker}-{chapter}-"):
            lies = {"speaker": speaker, "chapter": chapter}
            problems.add(row.place.problem("wrong-folder", utterance=row.utterance, **lies))


def _read_librispeech_speakers(folder: Path, path: Path, problems: ProblemList) -> SpeakerList:
    """``<id> | <sex> | <subset> | <minutes> | <name>``; lines beginning with ``;`` are comments."""
    file = path.relative_to(folder).as_posix()
    text, text_problems = read_text_file(path, file)
    problems.keep(text_problems)
    speakers = SpeakerList(is_read=bool(text))
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


def find_vctk(folder: Path) -> Path | None:
    """The folder of ``txt`` and the audio: `folder`, or the only such folder in it."""
    if not folder.is_dir():
        return None
    fitting = [root for root in (folder, *sorted(folder.iterdir())) if _audio_folder(root)]
    return fitting[0] if fitting else None


def _audio_folder(root: Path) -> Path | None:
    if not (root / "txt").is_dir() and not (root / _VCTK_SPEAKERS).is_file():
        return None
    return next((root / name for name in _AUDIO_FOLDERS if (root / name).is_dir()), None)


def read_vctk(folder: Path, *, enrolment_share: float) -> CorpusDraft:
    """Read the tree below `folder` without opening any audio."""
    root = find_vctk(folder)
    audio_folder = root and _audio_folder(root)
    if root is None or audio_folder is None:
        problem = FilePlace(".").problem("not-vctk", shape=VCTK_SHAPE)
        return empty_draft(Layout.VCTK, (problem,))
    problems = ProblemList()
    chosen = _choose_microphone(folder, audio_folder, problems)
    speakers = _read_vctk_speakers(folder, root / _VCTK_SPEAKERS, problems)
    rows = [_vctk_row(folder, root, file, speakers, problems) for file in chosen]
    _warn_of_missing_audio(folder, root, rows, problems)
    checked = check_rows(rows, problems)
    common = {each.name for each in checked[1] if _sentence(each.name) <= LAST_COMMON_SENTENCE}
    data_sets = split_into_sets(
        "vctk",
        checked[1],
        {speaker.name: speaker.gender for speaker in checked[0]},
        enrolment_share=enrolment_share,
        common=common if len(common) < len(checked[1]) else (),
    )
    return finish_draft(
        Layout.VCTK,
        checked,
        data_sets,
        listing=FilePlace(_VCTK_SPEAKERS),
        licence=stated_licence(root),
        problems=problems,
    )


def _sentence(utterance: str) -> int:
    match = _UTTERANCE.fullmatch(utterance)
    return int(match["sentence"]) if match else 0


def _choose_microphone(folder: Path, audio_folder: Path, problems: ProblemList) -> list[Path]:
    """One file per speaker and sentence, ``mic2`` before any other."""
    choices: dict[tuple[str, str], dict[str, Path]] = {}
    stray = []
    for file in audio_files(audio_folder):
        path = audio_folder / file
        match = _UTTERANCE.fullmatch(path.stem)
        if match is None or path.parent.name != match["speaker"]:
            stray.append(path.relative_to(folder).as_posix())
            continue
        key = match["speaker"], match["sentence"]
        choices.setdefault(key, {}).setdefault(match["microphone"] or "", path)
    note_stray_files(stray, FilePlace(audio_folder.relative_to(folder).as_posix()), problems)
    chosen = []
    for microphones in choices.values():
        best = "mic2" if "mic2" in microphones else min(microphones)
        if best not in ("mic2", ""):
            place = FilePlace(microphones[best].relative_to(folder).as_posix())
            problems.add(place.problem("other-microphone", microphone=best))
        chosen.append(microphones[best])
    return chosen


def _vctk_row(folder: Path, root: Path, audio: Path, speakers: SpeakerList, problems: ProblemList) -> SourceRow:
    speaker, sentence = audio.stem.split("_")[:2]
    file = audio.relative_to(folder).as_posix()
    path = root / "txt" / speaker / f"{speaker}_{sentence}.txt"
    place = FilePlace(path.relative_to(folder).as_posix())
    transcript, told = "", speakers.told(speaker)
    if path.is_file():
        transcript, text_problems = read_text_file(path, place.file)
        problems.keep(text_problems)
        told |= {"transcript"} if has_errors(text_problems) else frozenset()
    gender, gender_place = speakers.genders.get(speaker, ("", FilePlace(_VCTK_SPEAKERS)))
    return SourceRow(
        audio.stem, speaker, gender, transcript.strip(), audio, file, FilePlace(file), gender_place, place, told=told
    )


def _warn_of_missing_audio(folder: Path, root: Path, rows: list[SourceRow], problems: ProblemList) -> None:
    """A warning only: the published corpus itself has transcripts without a recording."""
    heard = {"_".join(row.utterance.split("_")[:2]) for row in rows}
    for path in sorted((root / "txt").glob("*/*.txt")):
        if path.stem not in heard and _UTTERANCE.fullmatch(path.stem):
            place = FilePlace(path.relative_to(folder).as_posix())
            problems.add(place.problem("no-recording", sentence=path.stem))


def _read_vctk_speakers(folder: Path, path: Path, problems: ProblemList) -> SpeakerList:
    """``<id> <age> <gender> …`` under a heading; early releases leave the ``p`` of the id out."""
    file = path.relative_to(folder).as_posix()
    text, text_problems = read_text_file(path, file)
    problems.keep(text_problems)
    speakers = SpeakerList(is_read=bool(text))
    for number, line in enumerate(text.split("\n"), start=1):
        fields = line.split()
        if not fields or fields[0].upper() == "ID":
            continue
        speaker = f"p{fields[0]}" if fields[0].isdigit() else fields[0]
        if len(fields) < 3:
            problems.add(FilePlace(file, number).problem("malformed-line/vctk", text=line.strip()[:50]))
            speakers.faulty.add(speaker)
            continue
        speakers.genders[speaker] = fields[2], FilePlace(file, number)
    return speakers
