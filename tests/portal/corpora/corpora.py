"""Small corpora of every layout, built in a folder; tests then break them in one place."""

import csv
from pathlib import Path

import numpy as np
import soundfile

from portal.intake.corpora.draft import KaldiTrial

SENTENCE = "HE SAID SO"


def write_audio(path, seconds=1.0, rate=16000, channels=1, seed=None):
    """Noise that is different for every path, unless a seed is given."""
    path.parent.mkdir(parents=True, exist_ok=True)
    seed = sum(path.name.encode()) * 7919 + len(path.name) if seed is None else seed
    noise = np.random.default_rng(seed).standard_normal((int(seconds * rate), channels))
    soundfile.write(path, (noise * 3000).astype(np.int16), rate, subtype="PCM_16")
    return path


def write_text(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def librispeech(folder, subset="dev-clean", speakers=(("11", "F"), ("12", "F"), ("21", "M"))):
    """Two chapters of four utterances each for every speaker; audio files are empty."""
    lines = [";ID  |SEX| SUBSET           |MINUTES| NAME"]
    for speaker, gender in speakers:
        lines.append(f"{speaker:5}| {gender} | {subset}  | 8.0 | A Name | with a bar")
        for chapter in ("100", "200"):
            place = folder / subset / speaker / chapter
            names = [f"{speaker}-{chapter}-{number:04d}" for number in range(4)]
            for name in names:
                write_text(place / f"{name}.flac", "")
            transcripts = "".join(f"{name} {SENTENCE}\n" for name in names)
            write_text(place / f"{speaker}-{chapter}.trans.txt", transcripts)
    write_text(folder / "SPEAKERS.TXT", "\n".join(lines) + "\n")
    return folder


def kaldi(folder, *, with_audio=True):
    """An enrolment set of two women and a trial set of three, of whom one is not enrolled."""
    sets: dict[str, dict[str, tuple[str, ...]]] = {
        "toy_dev_enrolls": {"11": ("11-a", "11-b"), "12": ("12-a", "12-b")},
        "toy_dev_trials_f": {"11": ("11-c",), "12": ("12-c",), "13": ("13-c",)},
    }
    for name, speakers in sets.items():
        place = folder / name
        pairs = [(utterance, speaker) for speaker in speakers for utterance in speakers[speaker]]
        write_lines(place / "utt2spk", [f"{u} {s}" for u, s in pairs])
        write_lines(place / "spk2utt", [f"{s} {' '.join(speakers[s])}" for s in speakers])
        write_lines(place / "spk2gender", [f"{s} f" for s in speakers])
        write_lines(place / "text", [f"{u} {SENTENCE}" for u, _ in pairs])
        write_lines(place / "utt2dur", [f"{u} 1.0 " for u, _ in pairs])
        write_lines(place / "wav.scp", [f"{u} data/toy_dev/wav/{u}.wav" for u, _ in pairs])
        if with_audio:
            for utterance, _ in pairs:
                write_text(folder / "audio" / f"{utterance}.wav", "")
        if "enrolls" in name:
            write_lines(place / "enrolls", [u for u, _ in pairs])
        else:
            write_lines(
                place / "trials",
                [f"{model} {u} {'target' if model == s else 'nontarget'}" for model in ("11", "12") for u, s in pairs],
            )
    return folder


def write_lines(path, lines):
    write_text(path, "".join(f"{line}\n" for line in lines))


COLUMNS = ("utterance_id", "speaker", "gender", "transcript", "path")


def manifest_rows(speakers=(("a", "F"), ("b", "F"), ("c", "M"), ("d", "M")), each=4):
    return [
        {
            "utterance_id": f"{speaker}_{number}",
            "speaker": speaker,
            "gender": gender,
            "transcript": SENTENCE,
            "path": f"{speaker}/{speaker}_{number}.flac",
        }
        for speaker, gender in speakers
        for number in range(each)
    ]


def manifest(folder, rows=None, columns=COLUMNS, *, name="utterances.csv"):
    """A manifest with an empty file for every path of `rows` that stays in the folder."""
    rows = manifest_rows() if rows is None else rows
    folder.mkdir(parents=True, exist_ok=True)
    for row in rows:
        stated = row["path"]
        if stated and ".." not in stated and not Path(stated).is_absolute() and ":" not in stated:
            write_text(folder / stated, "")
    with (folder / name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows(rows)
    return folder


def found(draft, code):
    """The problems of one kind, as (file, line)."""
    return [(each.file, each.line) for each in draft.problems if each.code == code]


def sentence(draft, code):
    """The one problem of a kind in prose."""
    (problem,) = [each for each in draft.problems if each.code == code]
    return problem.sentence()


def sizes(draft):
    return {each.name: len(each.utterances) for each in draft.data_sets}


def counts(draft):
    return {each.name: (each.origin, each.target_count, each.nontarget_count) for each in draft.trial_lists}


def edit(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{old!r} is not in {path}"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def trial_pairs(draft, trial_list):
    """The trials of a list, one by one: as given, or the product model by model."""
    if trial_list.trials is not None:
        yield from trial_list.trials
        return
    gender_of = {speaker.name: speaker.gender for speaker in draft.speakers}
    speaker_of = {utterance.name: utterance.speaker for utterance in draft.utterances}
    sets = {data_set.name: data_set for data_set in draft.data_sets}
    models = sorted({speaker_of[name] for name in sets[trial_list.enrolment_set].utterances})
    trials = [(name, speaker_of[name]) for name in sets[trial_list.trial_set].utterances]
    for model in models:
        for name, speaker in trials:
            if gender_of[model] == gender_of[speaker]:
                yield KaldiTrial(model, name, model == speaker)
