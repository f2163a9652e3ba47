"""A VCTK tree: ``wav48_silence_trimmed/p234/p234_063_mic2.flac``, or ``wav48``, ``wav16``.

Of each sentence the second microphone is taken, as in the challenge, else what there is. Sentences
001 to 024 are read by everyone and become the *common* trials; of the others `split_into_sets`
makes enrolment and *different* trials. Without sentences from 025 on there are no common ones.
"""

from __future__ import annotations

import re
from pathlib import Path

from evaluation.formats.problem_list import ProblemList
from evaluation.formats.problems import Severity, has_errors
from evaluation.formats.text_files import read_text_file
from portal.challenges.readers.data_sets import finish_draft, split_into_sets
from portal.challenges.readers.draft import CorpusDraft, Layout, empty_draft
from portal.challenges.readers.folders import audio_files, stated_licence
from portal.challenges.readers.rows import Place, SourceRow, SpeakerList, check_rows, note_stray_files

SHAPE = "a VCTK tree (wav48_silence_trimmed, wav48 or wav16 beside txt and speaker-info.txt)"
LAST_COMMON_SENTENCE = 24
_AUDIO_FOLDERS = ("wav48_silence_trimmed", "wav48", "wav16")
_SPEAKERS = "speaker-info.txt"
_UTTERANCE = re.compile(r"(?P<speaker>[a-z]\d+)_(?P<sentence>\d{3})(?:_(?P<microphone>mic\d))?")


def find_root(folder: Path) -> Path | None:
    """The folder of ``txt`` and the audio: `folder`, or the only such folder in it."""
    if not folder.is_dir():
        return None
    fitting = [root for root in (folder, *sorted(folder.iterdir())) if _audio_folder(root)]
    return fitting[0] if fitting else None


def _audio_folder(root: Path) -> Path | None:
    if not (root / "txt").is_dir() and not (root / _SPEAKERS).is_file():
        return None
    return next((root / name for name in _AUDIO_FOLDERS if (root / name).is_dir()), None)


def read_vctk(folder: Path, *, enrolment_share: float) -> CorpusDraft:
    """Read the tree below `folder` without opening any audio."""
    root = find_root(folder)
    audio_folder = root and _audio_folder(root)
    if root is None or audio_folder is None:
        problem = Place(".").problem("not-vctk", SHAPE, "none", "Name its top folder.")
        return empty_draft(Layout.VCTK, (problem,))
    problems = ProblemList()
    chosen = _choose_microphone(folder, audio_folder, problems)
    speakers = _read_speakers(folder, root / _SPEAKERS, problems)
    rows = [_row(folder, root, file, speakers, problems) for file in chosen]
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
        listing=Place(_SPEAKERS),
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
    note_stray_files(stray, Place(audio_folder.relative_to(folder).as_posix()), problems)
    chosen = []
    for microphones in choices.values():
        best = "mic2" if "mic2" in microphones else min(microphones)
        if best not in ("mic2", ""):
            place = Place(microphones[best].relative_to(folder).as_posix())
            remedy = "It was taken instead; nothing to do."
            problems.add(place.problem("other-microphone", "microphone 2", best, remedy, Severity.NOTE))
        chosen.append(microphones[best])
    return chosen


def _row(
    folder: Path,
    root: Path,
    audio: Path,
    speakers: SpeakerList,
    problems: ProblemList,
) -> SourceRow:
    speaker, sentence = audio.stem.split("_")[:2]
    file = audio.relative_to(folder).as_posix()
    path = root / "txt" / speaker / f"{speaker}_{sentence}.txt"
    place = Place(path.relative_to(folder).as_posix())
    transcript, told = "", speakers.told(speaker)
    if path.is_file():
        transcript, faults = read_text_file(path, place.file)
        problems.keep(faults)
        told |= {"transcript"} if has_errors(faults) else frozenset()
    gender, gender_place = speakers.genders.get(speaker, ("", Place(_SPEAKERS)))
    return SourceRow(
        audio.stem,
        speaker,
        gender,
        transcript.strip(),
        audio,
        file,
        Place(file),
        gender_place,
        place,
        told=told,
    )


def _warn_of_missing_audio(folder: Path, root: Path, rows: list[SourceRow], problems: ProblemList) -> None:
    """A warning only: the published corpus itself has transcripts without a recording."""
    heard = {"_".join(row.utterance.split("_")[:2]) for row in rows}
    for path in sorted((root / "txt").glob("*/*.txt")):
        if path.stem not in heard and _UTTERANCE.fullmatch(path.stem):
            place = Place(path.relative_to(folder).as_posix())
            expected = f"a recording of {path.stem}"
            remedy = "The sentence is left out; add the file if you have it."
            problems.add(place.problem("no-recording", expected, "none", remedy, Severity.WARNING))


def _read_speakers(folder: Path, path: Path, problems: ProblemList) -> SpeakerList:
    """``<id> <age> <gender> …`` under a heading; early releases leave the ``p`` of the id out."""
    file = path.relative_to(folder).as_posix()
    text, faults = read_text_file(path, file)
    problems.keep(faults)
    speakers = SpeakerList(is_read=bool(text))
    for number, line in enumerate(text.split("\n"), start=1):
        fields = line.split()
        if not fields or fields[0].upper() == "ID":
            continue
        speaker = f"p{fields[0]}" if fields[0].isdigit() else fields[0]
        if len(fields) < 3:
            expected = "“<id> <age> <gender> …”"
            found = f"“{line.strip()[:50]}”"
            problems.add(Place(file, number).problem("malformed-line", expected, found, "Correct the line."))
            speakers.faulty.add(speaker)
            continue
        speakers.genders[speaker] = fields[2], Place(file, number)
    return speakers
