"""A folder of Kaldi data directories, as the challenge distributes them.

A directory with ``enrolls`` is an enrolment set, one with ``trials`` a trial set; one with lists
such as ``enrolls_mic2`` and ``trials_f_mic2`` (the challenge's archives) gives a set per list. The
audio of ``wav.scp`` is found by basename below the audio root; commands are refused.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from evaluation.formats import kaldi
from evaluation.formats.kaldi import Parsed, Trial
from evaluation.formats.problem_list import ProblemList
from evaluation.formats.problems import Severity, has_errors
from evaluation.formats.text_files import read_text_file
from portal.challenges.readers.data_sets import (
    check_data_sets,
    data_set,
    enrolment_set_of,
    no_enrolment_set,
    product_trial_list,
    rows_are_sound,
)
from portal.challenges.readers.draft import (
    CorpusDraft,
    DraftTrialList,
    Layout,
    Role,
    empty_draft,
)
from portal.challenges.readers.folders import AudioIndex, stated_licence
from portal.challenges.readers.given_trials import given_trial_list
from portal.challenges.readers.rows import Place, SourceRow, check_rows, note_stray_files

SHAPE = "Kaldi data directories (each with utt2spk, wav.scp, spk2gender, text)"
_AUDIO_REMEDY = "Name the folder that holds the audio as audio root, or read the corpus without audio."
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
    place: Place
    trials: Parsed[tuple[Trial, ...]] | None = None


def find_directories(folder: Path) -> list[Path]:
    """The data directories: `folder` itself, or those in it, or those in its ``data``."""
    for places in ([folder], _inside(folder), _inside(folder / "data")):
        found = [place for place in places if (place / "utt2spk").is_file()]
        if found:
            return found
    return []


def _half_directories(directories: list[Path]) -> list[Path]:
    """Directories beside the found ones that hold lists of a data directory but no ``utt2spk``."""
    beside = {path for directory in directories for path in _inside(directory.parent)}
    marks = ("wav.scp", "trials", "enrolls", "spk2utt")
    halves = (path for path in beside.difference(directories) if any((path / mark).is_file() for mark in marks))
    return sorted(halves)


def _inside(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def read_kaldi_directories(folder: Path, *, audio_root: Path | None = None, without_audio: bool = False) -> CorpusDraft:
    """Read all directories without opening any audio.

    Args:
        audio_root: the folder below which the audio lies; `folder` itself by default.
        without_audio: accept that there is no audio; durations come from ``utt2dur``.
    """
    directories = find_directories(folder)
    if not directories:
        problem = Place(".").problem("no-kaldi-directory", SHAPE, "none", "Name their folder.")
        return empty_draft(Layout.KALDI, (problem,))
    root = audio_root or folder
    if not without_audio and not root.is_dir():
        problem = Place(str(root)).problem("missing-folder", "a folder", "none", _AUDIO_REMEDY)
        return empty_draft(Layout.KALDI, (problem,))
    problems = ProblemList()
    for directory in _half_directories(directories):
        problems.add(
            Place(f"{directory.name}/utt2spk").problem(
                "missing-file", "utt2spk beside the other lists", "none", "Add it, or take the directory away."
            )
        )
    index = None if without_audio else AudioIndex(root)
    rows: dict[str, SourceRow] = {}
    sets: list[KaldiSet] = []
    for directory in directories:
        here = _read_rows(folder, directory, index, problems)
        sets += _read_sets(folder, directory, here, problems)
        for row in here.values():
            _check_same(row, rows.setdefault(row.utterance, row), problems)
    if index:
        used = {row.audio for row in rows.values()}
        stray = [file for file in index.files if root / file not in used]
        note_stray_files(stray, Place("."), problems)
    return _draft(folder, rows, sets, problems, without_audio=without_audio)


def _draft(
    folder: Path,
    rows: Mapping[str, SourceRow],
    sets: Sequence[KaldiSet],
    problems: ProblemList,
    *,
    without_audio: bool,
) -> CorpusDraft:
    speakers, utterances = check_rows(rows.values(), problems, without_audio=without_audio, audio_remedy=_AUDIO_REMEDY)
    speaker_of = {each.name: each.speaker for each in utterances}
    genders = {each.name: each.gender for each in speakers}
    data_sets = {each.name: data_set(each.name, each.role, each.utterances) for each in sets}
    enrolment = [each.name for each in sets if each.role == "enrolment"]
    lists: list[DraftTrialList] = []
    sound = rows_are_sound(genders, utterances, problems)
    for each in (each for each in sets if each.role == "trial"):
        name = enrolment_set_of(each.name, enrolment)
        if name is None:
            if sound:
                problems.add(no_enrolment_set(each.name, enrolment, each.place))
            continue
        pair = data_sets[name], data_sets[each.name]
        if each.trials is None:
            lists.append(product_trial_list(*pair, speaker_of, genders))
        else:
            lists.append(given_trial_list(*pair, each.trials, speaker_of, genders, each.place, problems))
    check_data_sets(data_sets.values(), lists if sound else (), speaker_of, Place("."), problems)
    return CorpusDraft(
        Layout.KALDI,
        speakers,
        utterances,
        tuple(data_sets.values()),
        tuple(lists),
        synthetic=False,
        licence=stated_licence(folder),
        problems=problems.report(),
    )


def _read_rows(folder: Path, directory: Path, index: AudioIndex | None, problems: ProblemList) -> dict[str, SourceRow]:
    """The utterances of one directory: those of its ``utt2spk``."""
    base = _relative(directory, folder)

    def place(file: str, line: int | None = None) -> Place:
        return Place(f"{base}{file}", line)

    def keep(parsed: Parsed[T]) -> Parsed[T]:
        problems.keep(parsed.problems)
        return parsed

    speakers = keep(kaldi.read_utt2spk(directory / "utt2spk", place("utt2spk").file))
    paths = keep(kaldi.read_wav_scp(directory / "wav.scp", place("wav.scp").file))
    genders = keep(kaldi.read_spk2gender(directory / "spk2gender", place("spk2gender").file))
    texts = keep(kaldi.read_text(directory / "text", place("text").file))
    durations: Parsed[dict[str, float]] = Parsed({}, (), ())
    if (directory / "utt2dur").is_file():
        durations = keep(kaldi.read_utt2dur(directory / "utt2dur", place("utt2dur").file))
    faulty_speakers = _faulty_keys(directory / "utt2spk", speakers)
    for name, parsed in (("wav.scp", paths), ("text", texts), ("utt2dur", durations)):
        numbered = zip(parsed.content, parsed.lines, strict=True)
        if faulty_speakers is not None:
            _warn_of_unknown(place(name), numbered, speakers.content.keys() | faulty_speakers, problems)
    if (directory / "spk2utt").is_file():
        inverse = keep(kaldi.read_spk2utt(directory / "spk2utt", place("spk2utt").file))
        _check_inverse(place("spk2utt"), inverse, speakers.content, problems)
    lists = (("audio", "wav.scp", paths), ("gender", "spk2gender", genders), ("transcript", "text", texts))
    faulty = {what: _faulty_keys(directory / name, parsed) for what, name, parsed in lists}
    path_lines = dict(zip(paths.content, paths.lines, strict=True))
    gender_lines = dict(zip(genders.content, genders.lines, strict=True))
    text_lines = dict(zip(texts.content, texts.lines, strict=True))
    rows = {}
    for utterance, speaker in speakers.content.items():
        row_place = place("wav.scp", path_lines.get(utterance))
        stated = paths.content.get(utterance, "")
        rows[utterance] = SourceRow(
            utterance,
            speaker,
            genders.content.get(speaker, ""),
            texts.content.get(utterance, ""),
            _find_audio(index, stated, row_place, problems) if index else None,
            stated,
            row_place,
            place("spk2gender", gender_lines.get(speaker)),
            place("text", text_lines.get(utterance)),
            durations.content.get(utterance),
            _told(faulty, utterance, speaker),
        )
    return rows


def _told(faulty: Mapping[str, set[str] | None], utterance: str, speaker: str) -> frozenset[str]:
    """`SourceRow.told`: what lists lack of the utterance because they hold faults."""
    return frozenset(
        what for what, keys in faulty.items() if keys is None or (speaker if what == "gender" else utterance) in keys
    )


def _faulty_keys(path: Path, parsed: Parsed[T]) -> set[str] | None:
    """The first words of the lines that were refused; None, for any, where nothing could be read."""
    if not has_errors(parsed.problems):
        return set()
    if not parsed.lines:
        return None
    refused = {problem.line for problem in parsed.problems if problem.severity is Severity.ERROR}
    lines = enumerate(read_text_file(path)[0].split("\n"), start=1)
    return {words[0] for number, line in lines if number in refused and (words := line.split(None, 1))}


def _relative(directory: Path, folder: Path) -> str:
    """What stands before a file's name in reports: empty for the folder itself, else ``<dir>/``."""
    return "" if directory == folder else f"{directory.relative_to(folder).as_posix()}/"


def _find_audio(index: AudioIndex, stated: str, place: Place, problems: ProblemList) -> Path | None:
    found = index.matches(stated) if stated else []
    if len(found) > 1:
        expected = f"one file with the name of {stated}"
        remedy = "Name a narrower audio root, or remove the copies."
        problems.add(place.problem("ambiguous-file", expected, " and ".join(found[:3]), remedy))
    return index.folder / found[0] if found else None


def _warn_of_unknown(
    place: Place,
    numbered: Iterable[tuple[str, int]],
    known: Container[str],
    problems: ProblemList,
) -> None:
    for utterance, line in numbered:
        if utterance not in known:
            expected = "an utterance of utt2spk"
            remedy = "The line is left out; add the utterance to utt2spk or remove it here."
            problems.add(
                Place(place.file, line).problem("unknown-utterance", expected, utterance, remedy, Severity.WARNING)
            )


def _check_inverse(
    place: Place,
    inverse: Parsed[dict[str, tuple[str, ...]]],
    speaker_of: Mapping[str, str],
    problems: ProblemList,
) -> None:
    for (speaker, names), line in zip(inverse.content.items(), inverse.lines, strict=True):
        wrong = [name for name in names if speaker_of.get(name) != speaker]
        if wrong:
            expected = f"the utterances that utt2spk gives to {speaker}"
            found = f"{len(wrong)} others, such as {wrong[0]}"
            remedy = "utt2spk was used; make spk2utt again from it."
            problems.add(
                Place(place.file, line).problem("contradicting-speaker", expected, found, remedy, Severity.WARNING)
            )


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
            place = {"gender": row.gender_place, "transcript": row.transcript_place}
            expected = f"the {what} of {row.utterance} as in {first.place.file}: “{there}”"
            problems.add(
                place.get(what, row.place).problem(
                    f"contradicting-{what}", expected, f"“{here}”", "Correct one of the two."
                )
            )


def _read_sets(folder: Path, directory: Path, rows: Mapping[str, SourceRow], problems: ProblemList) -> list[KaldiSet]:
    """The data sets of one directory."""
    name = directory.resolve().name
    base = _relative(directory, folder)
    lists = sorted([*directory.glob("enrolls_*"), *directory.glob("trials_*")])
    if lists:
        plain = [directory / "enrolls"] if (directory / "enrolls").is_file() else []
        return [
            _listed_set(f"{name}_{path.name.removesuffix('_mic2')}", path, base, rows, problems)
            for path in (*plain, *lists)
        ]
    for list_name in ("enrolls", "trials"):
        if (directory / list_name).is_file():
            return [_listed_set(name, directory / list_name, base, rows, problems)]
    return _unlisted_set(name, Place(f"{base}utt2spk"), rows, problems)


def _listed_set(name: str, path: Path, base: str, rows: Mapping[str, SourceRow], problems: ProblemList) -> KaldiSet:
    place = Place(f"{base}{path.name}")
    if path.name.startswith("trials"):
        trials = kaldi.read_trials(path, place.file)
        problems.keep(trials.problems)
        named = {trial.utterance for trial in trials.content}
        _note_unused(place, [name for name in rows if name not in named], problems)
        chosen = tuple(name for name in rows if name in named)
        return KaldiSet(name, "trial", chosen, place, trials)
    enrolls = kaldi.read_enrolls(path, place.file)
    problems.keep(enrolls.problems)
    for utterance, line in zip(enrolls.content, enrolls.lines, strict=True):
        if utterance not in rows:
            expected = "an utterance of utt2spk"
            remedy = "Add it to utt2spk, or remove it here."
            problems.add(Place(place.file, line).problem("unknown-utterance", expected, utterance, remedy))
    chosen = tuple(name for name in enrolls.content if name in rows)
    _note_unused(place, [name for name in rows if name not in set(chosen)], problems)
    return KaldiSet(name, "enrolment", chosen, place)


def _note_unused(place: Place, unused: Sequence[str], problems: ProblemList) -> None:
    if unused:
        expected = "every utterance of utt2spk"
        found = f"{len(unused)} not named, such as {unused[0]}"
        remedy = "They are not part of this data set; nothing to do if that is meant."
        problems.add(place.problem("not-in-list", expected, found, remedy, Severity.NOTE))


def _unlisted_set(name: str, place: Place, rows: Mapping[str, SourceRow], problems: ProblemList) -> list[KaldiSet]:
    """A directory without lists: its name says the role; sets of unions are left out."""
    if name.endswith(("_all", "_asr")):
        expected, found = "a data set of its own", f"{name}, a union of others"
        remedy = "It was left out as a set; its utterances were read."
        problems.add(place.problem("union-left-out", expected, found, remedy, Severity.NOTE))
        return []
    roles: dict[str, Role] = {"_enrol": "enrolment", "_trial": "trial"}
    role: Role = next((role for mark, role in roles.items() if mark in name), "training")
    expected, found = "a file enrolls or trials", f"none; {name} was read as {role}"
    remedy = "Add the file if the role is another."
    problems.add(place.problem("role-assumed", expected, found, remedy, Severity.NOTE))
    return [KaldiSet(name, role, tuple(rows), place)]
