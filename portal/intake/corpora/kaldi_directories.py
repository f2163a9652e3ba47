"""A folder of Kaldi data directories, as the challenge distributes them.

A directory with ``enrolls`` is an enrolment set, one with ``trials`` a trial set; one with lists
such as ``enrolls_mic2`` and ``trials_f_mic2`` (the challenge's archives) gives a set per list. The
audio of ``wav.scp`` is found by basename below the audio root; commands are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from common.folders import AudioIndex, list_folders, stated_licence
from common.problems import ProblemList, has_errors
from evaluation.formats import kaldi
from evaluation.formats.kaldi import KaldiTrial, Parsed
from portal.intake.corpora.data_sets import data_set, finish_draft
from portal.intake.corpora.draft import (
    CorpusDraft,
    FilePlace,
    Layout,
    Role,
    SourceRow,
    check_rows,
    empty_draft,
    note_stray_files,
)

SHAPE = "Kaldi data directories (each with utt2spk, wav.scp, spk2gender, text)"
_AUDIO_REMEDY = (
    "Name the folder that holds the audio (“Folder of the audio files”, --audio-root), or import the lists without "
    "audio."
)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class KaldiSet:
    """One data set before its trials are checked.

    Attributes:
        place: the file that defines it.
        trials: the given trials; None where the directory has none.
    """

    name: str
    role: Role
    utterances: tuple[str, ...]
    place: FilePlace
    trials: Parsed[tuple[KaldiTrial, ...]] | None = None


def find_directories(folder: Path) -> list[Path]:
    """Return the data directories: `folder` itself, or those in it, or those in its ``data``."""
    for places in ([folder], list_folders(folder), list_folders(folder / "data")):
        found = [place for place in places if (place / "utt2spk").is_file()]
        if found:
            return found
    return []


def _half_directories(folder: Path, directories: list[Path]) -> list[Path]:
    """Return directories in `folder` that hold lists of a data directory but no ``utt2spk``."""
    beside = {path for directory in directories if directory != folder for path in list_folders(directory.parent)}
    marks = ("wav.scp", "trials", "enrolls", "spk2utt")
    halves = (path for path in beside.difference(directories) if any((path / mark).is_file() for mark in marks))
    return sorted(halves)


def read_kaldi_directories(folder: Path, *, audio_root: Path | None = None, without_audio: bool = False) -> CorpusDraft:
    """Read all directories without opening any audio.

    Args:
        audio_root: the folder below which the audio lies; `folder` itself by default.
        without_audio: accept that there is no audio; durations come from ``utt2dur``.
    """
    directories = find_directories(folder)
    if not directories:
        problem = FilePlace(".").problem("no-kaldi-directory", shape=SHAPE)
        return empty_draft(Layout.KALDI, (problem,))
    root = audio_root or folder
    if not without_audio and not root.is_dir():
        problem = FilePlace(str(root)).problem("missing-folder/audio")
        return empty_draft(Layout.KALDI, (problem,))
    problems = ProblemList()
    for directory in _half_directories(folder, directories):
        problems.add(FilePlace(f"{directory.name}/utt2spk").problem("missing-file/utt2spk"))
    index = None if without_audio else AudioIndex(root)
    rows: dict[str, SourceRow] = {}
    sets: list[KaldiSet] = []
    for directory in directories:
        reader = _Directory(folder, directory, problems)
        here = reader.read_rows(index)
        sets += reader.read_sets(here)
        for row in here.values():
            _check_same(row, rows.setdefault(row.utterance, row), problems)
    if index:
        used = {row.audio for row in rows.values()}
        stray = [file for file in index.files if root / file not in used]
        note_stray_files(stray, FilePlace("."), problems)
    data_sets = {each.name: data_set(each.name, each.role, each.utterances) for each in sets}
    return finish_draft(
        Layout.KALDI,
        check_rows(
            rows.values(),
            problems,
            without_audio=without_audio,
            audio_remedy=_AUDIO_REMEDY,
            audio_place=f" below the folder of the {'audio files' if audio_root else 'corpus'}",
            name_unlike=index.name_other_capitals if index else None,
        ),
        list(data_sets.values()),
        listing=FilePlace("."),
        licence=stated_licence(folder),
        problems=problems,
        given={each.name: (each.place, each.trials) for each in sets},
    )


class _Directory:
    """One data directory while it is read; what is wrong with it is added to `problems`."""

    def __init__(self, folder: Path, path: Path, problems: ProblemList) -> None:
        self._path, self._problems = path, problems
        self._base = "" if path == folder else f"{path.relative_to(folder).as_posix()}/"

    def read_rows(self, index: AudioIndex | None) -> dict[str, SourceRow]:
        """Return the utterances: those of ``utt2spk``."""
        speakers = self._read(kaldi.read_utt2spk, "utt2spk")
        paths = self._read(kaldi.read_wav_scp, "wav.scp")
        genders = self._read(kaldi.read_spk2gender, "spk2gender")
        texts = self._read(partial(kaldi.read_text, known=speakers.content), "text")
        durations: Parsed[dict[str, float]] = Parsed({}, (), ())
        if (self._path / "utt2dur").is_file():
            durations = self._read(kaldi.read_utt2dur, "utt2dur")
        if (faulty_speakers := _find_faulty_keys(speakers)) is not None:
            known = speakers.content.keys() | faulty_speakers
            for name, parsed in (("wav.scp", paths), ("text", texts), ("utt2dur", durations)):
                for utterance, line in zip(parsed.content, parsed.lines, strict=True):
                    if utterance not in known:
                        self._tell("unknown-utterance/left-out", name, line, utterance=utterance)
        if (self._path / "spk2utt").is_file():
            self._check_inverse(speakers.content)
        lists = (("audio", "wav.scp", paths), ("gender", "spk2gender", genders), ("transcript", "text", texts))
        faulty = {what: _find_faulty_keys(parsed) for what, _, parsed in lists}
        lines = {name: dict(zip(parsed.content, parsed.lines, strict=True)) for _, name, parsed in lists}
        rows = {}
        for utterance, speaker in speakers.content.items():
            place = self._place("wav.scp", lines["wav.scp"].get(utterance))
            stated = paths.content.get(utterance, "")
            named = (utterance, speaker, genders.content.get(speaker, ""), texts.content.get(utterance, ""))
            audio = _find_audio(index, stated, place, self._problems) if index else None
            gender_place = self._place("spk2gender", lines["spk2gender"].get(speaker))
            places = (place, gender_place, self._place("text", lines["text"].get(utterance)))
            rest = (durations.content.get(utterance), _told(faulty, utterance, speaker))
            rows[utterance] = SourceRow(*named, audio, stated, *places, *rest)
        return rows

    def read_sets(self, rows: Mapping[str, SourceRow]) -> list[KaldiSet]:
        """Return the data sets."""
        name = self._path.resolve().name
        lists = sorted([*self._path.glob("enrolls_*"), *self._path.glob("trials_*")])
        plain = [self._path / word for word in ("enrolls", "trials") if (self._path / word).is_file()]
        if lists:
            whole = [path for path in plain if path.name == "enrolls"]
            names = {path.name: f"{name}_{path.name.removesuffix('_mic2')}" for path in (*whole, *lists)}
            return [self._listed_set(whole_name, file, rows) for file, whole_name in names.items()]
        return [self._listed_set(name, plain[0].name, rows)] if plain else self._unlisted_set(name, rows)

    def _listed_set(self, name: str, file: str, rows: Mapping[str, SourceRow]) -> KaldiSet:
        if file.startswith("trials"):
            trials = self._read(kaldi.read_trials, file)
            named = {trial.utterance for trial in trials.content}
            chosen = tuple(name for name in rows if name in named)
            self._note_unused(file, rows, chosen)
            return KaldiSet(name, "trial", chosen, self._place(file), trials)
        enrolls = self._read(kaldi.read_enrolls, file)
        for utterance, line in zip(enrolls.content, enrolls.lines, strict=True):
            if utterance not in rows:
                self._tell("unknown-utterance/enrolls", file, line, utterance=utterance)
        chosen = tuple(name for name in enrolls.content if name in rows)
        self._note_unused(file, rows, chosen)
        return KaldiSet(name, "enrolment", chosen, self._place(file))

    def _unlisted_set(self, name: str, rows: Mapping[str, SourceRow]) -> list[KaldiSet]:
        """Return a directory without lists: its name says the role; sets of unions are left out."""
        if name.endswith(("_all", "_asr")):
            self._tell("union-left-out", "utt2spk", name=name)
            return []
        roles: dict[str, Role] = {"_enrol": "enrolment", "_trial": "trial"}
        role: Role = next((role for mark, role in roles.items() if mark in name), "training")
        self._tell("role-assumed", "utt2spk", name=name, role=role)
        return [KaldiSet(name, role, tuple(rows), self._place("utt2spk"))]

    def _note_unused(self, file: str, rows: Mapping[str, SourceRow], chosen: tuple[str, ...]) -> None:
        known = set(chosen)
        if unused := [name for name in rows if name not in known]:
            self._tell("not-in-list", file, number=len(unused), first=unused[0])

    def _check_inverse(self, speaker_of: Mapping[str, str]) -> None:
        inverse = self._read(kaldi.read_spk2utt, "spk2utt")
        for (speaker, names), line in zip(inverse.content.items(), inverse.lines, strict=True):
            if wrong := [name for name in names if speaker_of.get(name) != speaker]:
                others = {"speaker": speaker, "number": len(wrong), "first": wrong[0]}
                self._tell("contradicting-speaker/spk2utt", "spk2utt", line, **others)

    def _read(self, reader: Callable[[Path, str], Parsed[T]], file: str) -> Parsed[T]:
        parsed = reader(self._path / file, self._place(file).file)
        self._problems.keep(parsed.problems)
        return parsed

    def _place(self, file: str, line: int | None = None) -> FilePlace:
        return FilePlace(f"{self._base}{file}", line)

    def _tell(self, kind: str, file: str, line: int | None = None, /, **values: Any) -> None:
        self._problems.add(self._place(file, line).problem(kind, **values))


def _find_faulty_keys(parsed: Parsed[T]) -> frozenset[str] | None:
    """Return the first words of the lines that were refused; None, for any, where nothing could be read."""
    if not has_errors(parsed.problems):
        return frozenset()
    return parsed.refused if parsed.lines else None


def _told(faulty: Mapping[str, frozenset[str] | None], utterance: str, speaker: str) -> frozenset[str]:
    """`SourceRow.told`: what lists lack of the utterance because they hold problems."""
    return frozenset(
        what for what, keys in faulty.items() if keys is None or (speaker if what == "gender" else utterance) in keys
    )


def _find_audio(index: AudioIndex, stated: str, place: FilePlace, problems: ProblemList) -> Path | None:
    found = index.matches(stated) if stated else []
    if len(found) > 1:
        problems.add(place.problem("ambiguous-file", stated=stated, found=" and ".join(found[:3])))
    return index.folder / found[0] if found else None


def _check_same(row: SourceRow, first: SourceRow, problems: ProblemList) -> None:
    """An utterance may be in several data sets, but says the same everywhere."""
    pairs = (
        ("speaker", row.speaker, first.speaker),
        ("gender", row.gender, first.gender),
        ("transcript", row.transcript, first.transcript),
        ("file", Path(row.file).name, Path(first.file).name),
    )
    for what, here, there in pairs:
        if here != there:
            place = {"gender": row.gender_place, "transcript": row.transcript_place}.get(what, row.place)
            stated = {"what": what, "utterance": row.utterance, "first": first.place.file, "there": there}
            problems.add(place.problem(f"contradicting-{what}/set", here=here, **stated))
