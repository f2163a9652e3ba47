"""All methods on the same few utterances: words, attackers, intonation, naturalness, voices, speed; kept in one file.

Speech: speakers of LibriSpeech test-other, who are in none of its training parts; of each the shortest utterances of
three seconds and more, half for enrolment, half for trials. Methods with targets get two of LibriSpeech
train-clean-100, a woman and a man with 25 minutes each, from ``../shared/speech-train``. The file is
`anonymization/methods/measured.toml`, which pages and documents read; a method that is not measured keeps its entry.

The semi-informed attacker is measured by itself, as that takes as much time as all else: it is trained on pieces of the
recordings of other speakers there, each anonymised by the method in a voice of its own. So is whether voices are those
that were given: as a mark follows from it, on more utterances of the same speakers.
"""

from __future__ import annotations

import csv
import json
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from anonymization.methods.content_decoder.network_files import read_pool
from anonymization.methods.contract import (
    Anonymizer,
    Item,
    Options,
    PseudoSpeaker,
    Target,
    TargetPool,
    VoiceRequest,
    keeps_duration,
    plans_voices,
    takes_targets,
)
from anonymization.methods.measured import FILE, Measurements
from anonymization.methods.voices.pseudo_speakers import plan_requests, plan_voices, pseudo_speaker_key
from anonymization.methods.voices.targets import DEFAULT_SELECTION, SourceUtterance, plan_targets
from anonymization.methods.voices.vectors import read_vector
from benchmarks._attackers import trial_scores
from benchmarks._speech import RATE_HZ, SPEECH, Speech, Utterance
from common.arrays import Floats, Samples

CORPUS = "librispeech-test-other"
TARGET_SPEECH = Path("../shared/speech-train")
SHORTEST_S = 3.0
RECOGNIZERS = ("moonshine-tiny", "whisper-base")
ENCODERS = ("wespeaker-resnet34", "ge2e")
PRESET, EPOCHS = "small", 40  # of the attacker that is trained
PIECES, PIECE_S = 2, 4.0  # of each speaker that it is trained on
# Utterances of each speaker by part, and where the file names the speech of a part.
PER_SPEAKER = {"comparison": 4, "semi-informed": 4, "acceptance": 8}
_SPEECH_OF = {"comparison": "speech", "semi-informed": "speech", "acceptance": "acceptance_speech"}
SEED = 2026
_TOLD = ("date", "speech", "acceptance_speech", "trained", "words", "recognizers", "encoders")


def read_test_speech(n_speakers: int, per_speaker: int) -> tuple[Speech, dict[str, str]]:
    """So many utterances of so many speakers, women and men in turn, and the words of each."""
    import soundfile

    with (SPEECH / "utterances.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["corpus"] == CORPUS]
    by_gender = {g: sorted({row["speaker"] for row in rows if row["gender"] == g}) for g in ("F", "M")}
    speakers = [speaker for pair in zip(*by_gender.values(), strict=False) for speaker in pair][:n_speakers]
    utterances, words = [], {}
    for speaker in speakers:
        own = [row for row in rows if row["speaker"] == speaker and float(row["duration_s"]) >= SHORTEST_S]
        for row in sorted(own, key=lambda row: float(row["duration_s"]))[:per_speaker]:
            samples, _ = soundfile.read(SPEECH / row["path"], dtype="int16")
            utterances.append(Utterance(row["utterance_id"], speaker, row["gender"], CORPUS, samples))
            words[row["utterance_id"]] = row["transcript"]
    return Speech(utterances), words


def read_targets() -> TargetPool:
    """The two speakers with much speech; a recording is read when it is needed."""
    import soundfile

    with (TARGET_SPEECH / "utterances.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["part"] == "many"]
    genders = {row["speaker"]: row["gender"].lower() for row in rows}
    return TargetPool(
        Target(
            name,
            gender,
            tuple(
                partial(soundfile.read, TARGET_SPEECH / row["path"], dtype="int16")
                for row in rows
                if row["speaker"] == name
            ),
        )
        for name, gender in genders.items()
    )


class Judges:
    """Recogniser and encoders in memory, and what they say of the originals."""

    def __init__(self, speech: Speech, words: Mapping[str, str]) -> None:
        from evaluation.metrics.word_normalization import written_english
        from speech.encoders import registry as encoders
        from speech.recognizers import registry as recognizers

        self.speech, self._plain = speech, written_english
        self._words = {name: written_english(text) for name, text in words.items()}
        self._recognizers = {name: recognizers.load(name) for name in RECOGNIZERS}
        self._encoders = {name: encoders.load(name) for name in ENCODERS}
        self.sides = {role: speech.side(role) for role in ("enrolment", "trial")}
        self.original = {role: self.embed([each.samples for each in side]) for role, side in self.sides.items()}
        self.contours = [_f0(each.samples) for each in self.sides["trial"]]

    def embed(self, sounds: Sequence[Samples]) -> dict[str, Floats]:
        """Vectors by encoder, shape (utterances, dimension)."""
        return {
            name: np.stack([encoder.embed([each], RATE_HZ)[0] for each in sounds]).astype(np.float64)
            for name, encoder in self._encoders.items()
        }

    @cache  # noqa: B019 - as long as the benchmark
    def embed_recording(self, path: str, encoder: str) -> Floats:
        """The unit vector of a recording of ``../shared/speech-train``."""
        import soundfile

        samples, _ = soundfile.read(TARGET_SPEECH / path, dtype="int16")
        vector = self._encoders[encoder].embed([samples], RATE_HZ)[0].astype(np.float64)
        return vector / np.linalg.norm(vector)

    def measure_outputs(self, outputs: Mapping[str, Sequence[Samples]]) -> dict[str, Any]:
        """What is measured of any output by role: words, attackers that were not trained on it, F0, distinctiveness,
        naturalness."""
        enrolled, tried = (self.embed(outputs[role]) for role in ("enrolment", "trial"))
        return {
            "word_errors": self.word_errors(outputs["trial"]),
            "ignorant": self.error_rates(self.original["enrolment"], tried),
            "lazy_informed": self.error_rates(enrolled, tried),
            "rho_f0": self.pitch_correlation(outputs["trial"]),
            "gvd_db": self.gain_of_distinctiveness(tried),
            "naturalness": self.naturalness(outputs["trial"]),
        }

    def word_errors(self, sounds: Sequence[Samples]) -> dict[str, float]:
        """Of the trials by recogniser, as a share of the words."""
        from evaluation.metrics.word_errors import count_word_errors

        names = [each.name for each in self.sides["trial"]]
        known = {name: self._words[name] for name in names}
        rates = {}
        for recognizer, engine in self._recognizers.items():
            texts = engine.transcribe(sounds, RATE_HZ)
            heard = {name: self._plain(text) for name, text in zip(names, texts, strict=True)}
            rate = count_word_errors(known, heard).honest.error_rate
            assert rate is not None
            rates[recognizer] = rate
        return rates

    def error_rates(self, enrolled: Mapping[str, Floats], tried: Mapping[str, Floats]) -> dict[str, float]:
        """EER by encoder."""
        return {name: self.error_rate(enrolled[name], tried[name]) for name in ENCODERS}

    def error_rate(self, enrolled: Floats, tried: Floats) -> float:
        """EER (Kaldi's): every trial against all speakers of its gender; vectors of shape (utterances, dimension)."""
        from evaluation.metrics.detection import kaldi_eer

        models, tests = (
            dict(zip([each.name for each in self.sides[role]], vectors, strict=True))
            for role, vectors in (("enrolment", enrolled), ("trial", tried))
        )
        return kaldi_eer(*trial_scores(self.sides["enrolment"], models, self.sides["trial"], tests))

    def trained_attacker(self, training: Sequence[Samples], outputs: Mapping[str, Sequence[Samples]]) -> float:
        """EER of an attacker that was trained on these forms of the speech of `read_training_speech`."""
        from evaluation.attackers.training.corpus import TrainingUtterance
        from evaluation.attackers.training.recipe import find_preset
        from evaluation.attackers.training.train import train
        from evaluation.attackers.training.trained_attacker import attacking_encoder

        utterances = [
            TrainingUtterance(each.name, each.name.partition("#")[0], partial(_given, samples))
            for each, samples in zip(read_training_speech().utterances, training, strict=True)
        ]
        recipe = replace(find_preset(PRESET), epochs=EPOCHS)
        with tempfile.TemporaryDirectory() as folder:
            encoder = attacking_encoder(train(utterances, recipe, SEED, Path(folder)))
            enrolled, tried = (
                np.stack([encoder.embed([each], RATE_HZ)[0] for each in outputs[role]]).astype(np.float64)
                for role in ("enrolment", "trial")
            )
        return self.error_rate(enrolled, tried)

    def naturalness(self, sounds: Sequence[Samples]) -> float:
        """Mean of DNSMOS (P.808) over the trials, 1 to 5."""
        from evaluation.metrics.naturalness import predict_naturalness

        found = [predict_naturalness(each, RATE_HZ) for each in sounds]
        return float(np.mean([one for one in found if one is not None]))

    def gain_of_distinctiveness(self, tried: Mapping[str, Floats]) -> float:
        """G_VD in dB, by the first encoder."""
        from evaluation.metrics.voice_similarity import voice_distinctiveness_of_embeddings

        speakers = [each.speaker for each in self.sides["trial"]]
        name = ENCODERS[0]
        found = voice_distinctiveness_of_embeddings(self.original["trial"][name], tried[name], speakers)
        return round(float(found.gain_db), 4) + 0.0

    def pitch_correlation(self, sounds: Sequence[Samples]) -> float:
        """Mean ρF0 of the trials that have one."""
        from evaluation.metrics.pitch import pitch_correlation

        pairs = zip(self.contours, map(_f0, sounds), strict=True)
        found = [pitch_correlation(original, output).rho for original, output in pairs]
        return float(np.mean([rho for rho in found if rho is not None and np.isfinite(rho)]))


def _f0(samples: Samples) -> Floats:
    from speech.pitch.estimators import f0_praat

    return f0_praat(samples, RATE_HZ)


def plan(
    method: Anonymizer, speech: Speech, role: Any, options: Options | None = None, split: str = "bench"
) -> dict[str, PseudoSpeaker]:
    """The voice of each speaker in a role, of all their recordings in it."""
    heard = speech.side(role) if split == "bench" else speech.utterances
    speakers = {each.speaker: each.gender.lower() for each in speech.utterances}
    if takes_targets(method):
        sources = [SourceUtterance("", speaker, gender, role, split, "speaker") for speaker, gender in speakers.items()]
        assigned = plan_targets(sources, read_targets().targets, DEFAULT_SELECTION, seed=SEED)
        return {each.speaker: each.voice for each in assigned}
    if not plans_voices(method):
        planned = plan_voices(method.parameters, seed=SEED, role=role, split=split, speakers=speakers)
        return dict(planned.voices)
    requests = [
        VoiceRequest(
            pseudo_speaker_key(seed=SEED, role=role, split=split, speaker=speaker),
            gender,
            tuple(partial(_given, each.samples) for each in heard if each.speaker == speaker),
            options or {},
        )
        for speaker, gender in speakers.items()
    ]
    return dict(zip(speakers, plan_requests(method, requests), strict=True))


def _given(samples: Samples) -> tuple[Samples, int]:
    return samples, RATE_HZ


@cache
def read_training_speech() -> Speech:
    """What the semi-informed attacker learns from: pieces from start to end of one recording of each speaker.

    Each piece counts as a speaker, so that it gets a voice of its own; its name begins with the real one.
    """
    import soundfile

    utterances = []
    with (TARGET_SPEECH / "utterances.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["part"] == "pool"]
    length = int(PIECE_S * RATE_HZ)
    for row in rows:
        samples, _ = soundfile.read(TARGET_SPEECH / row["path"], dtype="int16")
        starts = np.linspace(0, max(0, samples.size - length), PIECES).astype(int)
        for number, start in enumerate(starts):
            name = f"{row['speaker']}#{number}"
            utterances.append(Utterance(name, name, row["gender"], "librispeech", samples[start : start + length]))
    return Speech(utterances)


def anonymize_trials(
    method: Anonymizer, judges: Judges, options: Options | None = None
) -> tuple[dict[str, list[Samples]], dict[str, PseudoSpeaker], float]:
    """The output of either role, the voices of the trials, and the seconds of work."""
    outputs: dict[str, list[Samples]] = {}
    voices: dict[str, PseudoSpeaker] = {}
    work_s = 0.0
    for role, side in judges.sides.items():
        voices = plan(method, judges.speech, role, options)
        items = [Item(each.samples, voices[each.speaker]) for each in side]
        one_of_each = {item.pseudo_speaker.target: item for item in items}
        method.anonymize_batch(list(one_of_each.values()), RATE_HZ, options=options)  # loads, outside of the time
        began = time.process_time()
        outputs[role] = method.anonymize_batch(items, RATE_HZ, options=options)
        work_s += time.process_time() - began
    return outputs, voices, work_s


def measure(method: Anonymizer, judges: Judges, options: Options | None = None) -> dict[str, Any]:
    """All numbers of a method but that of the semi-informed attacker, as they are kept."""
    outputs, voices, work_s = anonymize_trials(method, judges, options)
    tried = judges.embed(outputs["trial"])
    return {
        "version": method.version,
        **judges.measure_outputs(outputs),
        **_drift(judges, voices, tried),
        "work_per_second": work_s / judges.speech.duration_s,
    }


def measure_semi_informed(method: Anonymizer, judges: Judges) -> float:
    """EER of an attacker that was trained on speech of the method."""
    training = read_training_speech()
    voices = plan(method, training, "trial", split="training")
    learnt = method.anonymize_batch([Item(each.samples, voices[each.speaker]) for each in training.utterances], RATE_HZ)
    return judges.trained_attacker(learnt, anonymize_trials(method, judges)[0])


def _drift(judges: Judges, voices: Mapping[str, PseudoSpeaker], tried: Mapping[str, Floats]) -> dict[str, float]:
    """Mean cosine of the vector that a trial was to have and the one that it has; nothing where voices have no vector.

    By GE2E, with which the vectors of all voices are made; those of mixtures are means of a recording of each speaker.
    """
    encoder, speakers = "ge2e", _first_recordings()
    given = {}
    for speaker, voice in voices.items():
        if voice.vector:
            given[speaker] = read_vector(voice.vector).astype(np.float64)
        elif voice.mixture and set(voice.mixture) <= set(speakers):
            given[speaker] = _voice_vector(judges, voice.mixture, speakers, encoder)
    trials = judges.sides["trial"]
    if not set(voices) <= set(given):
        return {}
    cosines = [_cosine(vector, given[each.speaker]) for vector, each in zip(tried[encoder], trials, strict=True)]
    return {"to_given_vector": float(np.mean(cosines))}


def compare(
    methods: Sequence[Anonymizer],
    n_speakers: int,
    per_speaker: int | None = None,
    sweep: tuple[str, Sequence[float]] | None = None,
    part: str = "comparison",
    file: Path = FILE,
    *,
    is_whole: bool = False,
) -> None:
    """Measure the methods and keep each in a file as soon as it is measured.

    per_speaker: utterances; as many as `PER_SPEAKER` says where not given.
    sweep: an option and the values that are tried, of which nothing is kept but what is printed.
    part: ``semi-informed`` measures that attacker, ``acceptance`` whether voices are those that were given, and
        ``comparison`` all else; each is added to what is kept.
    is_whole: all methods are measured, so that the rows of originals and copies, to which all are compared, and the
        speech may be other ones; otherwise each run changes the rows of its own methods only.

    Raises:
        ValueError: some methods were to be measured on other speech than those that are kept.
    """
    speech, words = read_test_speech(n_speakers, per_speaker or PER_SPEAKER[part])
    judges = Judges(speech, words)
    trials, training = judges.sides["trial"], read_training_speech()
    original = {role: [each.samples for each in side] for role, side in judges.sides.items()}
    speakers = len(training.utterances) // PIECES
    about: dict[str, Any] = {
        "date": datetime.now(UTC).date().isoformat(),
        _SPEECH_OF[part]: f"LibriSpeech test-other, {n_speakers} speakers, {len(speech.utterances)} utterances, "
        f"{speech.duration_s:.0f} s, {len(trials)} of them trials",
        "recognizers": list(RECOGNIZERS),
        "encoders": list(ENCODERS),
        "trained": f"ECAPA of the preset {PRESET}, {EPOCHS} epochs, {PIECES} pieces of {PIECE_S:g} s of each of "
        f"{speakers} speakers of LibriSpeech train-clean-100",
    }
    if part == "comparison":
        about["words"] = sum(len(words[each.name].split()) for each in trials)
    if sweep is None and not is_whole:
        refuse_other_speech(file, about)
    if part == "semi-informed":
        about["original"] = {
            "semi_informed": judges.trained_attacker([e.samples for e in training.utterances], original)
        }
    elif part == "comparison":
        if sweep is None:
            about["copied"] = measure_copies(judges)
        about["original"] = {
            "word_errors": judges.word_errors(original["trial"]),
            "ignorant": judges.error_rates(judges.original["enrolment"], judges.original["trial"]),
            "rho_f0": 1.0,
            "gvd_db": 0.0,
            "naturalness": judges.naturalness(original["trial"]),
        }
    print(json.dumps(about, indent=1), flush=True)
    for each in methods:
        method = each.prepare(read_targets()) if takes_targets(each) else each
        if sweep is not None:
            for value in sweep[1]:
                found = measure(method, judges, {sweep[0]: value})
                print(f"{method.name} {sweep[0]}={value:g}", json.dumps(found), flush=True)
            continue
        if part == "semi-informed":
            found = {"version": method.version, "semi_informed": measure_semi_informed(method, judges)}
        elif part == "acceptance":
            voices = plan(method, speech, "trial")
            outputs = method.anonymize_batch([Item(each.samples, voices[each.speaker]) for each in trials], RATE_HZ)
            tried = judges.embed(outputs)[ENCODERS[0]]
            found = {"version": method.version, **measure_acceptance(method, judges, voices, tried)}
        else:
            found = measure(method, judges)
        print(method.name, json.dumps(found), flush=True)
        keep(file, about, method.name, found, is_whole=is_whole)


def measure_copies(judges: Judges) -> dict[str, Any]:
    """Of the originals by way of HiFi-GAN: what the vocoder of most methods costs."""
    from speech.audio.files import resample, to_pcm16
    from speech.vocoders import hifigan

    vocoder = hifigan.load()
    copies: dict[str, list[Samples]] = {}
    began = time.process_time()
    for role, side in judges.sides.items():
        given = (resample(each.samples, RATE_HZ, hifigan.RATE_HZ).astype(np.float32) for each in side)
        sounds = vocoder.synthesize([hifigan.log_mel(each / np.float32(32768)) for each in given])
        copies[role] = [
            resample(to_pcm16(sound), hifigan.RATE_HZ, RATE_HZ)[: each.samples.size]
            for sound, each in zip(sounds, side, strict=True)
        ]
    work_s = time.process_time() - began
    return judges.measure_outputs(copies) | {"work_per_second": work_s / judges.speech.duration_s}


def measure_acceptance(
    method: Anonymizer, judges: Judges, voices: Mapping[str, PseudoSpeaker], tried: Floats
) -> dict[str, float]:
    """In how many trials the output is nearer to the voice that it was given than to recordings of its own speaker, and
    than to the voice of another trial, by the first encoder, which made neither; nothing where voices are none.

    A voice that is a mixture of people, or a target, sounds as their recordings do, and a vector as those of the five
    speakers whose own ones are nearest to it. What a mixture of synthetic voices sounds like is told by the words of
    somebody else, spoken in it.

    Args:
        tried: vectors of the trials.
    """
    trials, enrolment = judges.sides["trial"], judges.sides["enrolment"]
    given = {speaker: _find_given(method, judges, speaker, voice) for speaker, voice in voices.items()}
    if any(vector is None for vector in given.values()):
        return {}
    own: dict[str, list[Floats]] = {}
    for each, vector in zip(enrolment, judges.original["enrolment"][ENCODERS[0]], strict=True):
        own.setdefault(each.speaker, []).append(vector)
    others = [*trials[len(trials) // 2 :], *trials[: len(trials) // 2]]
    to_own = [_cosine(v, np.mean(own[each.speaker], axis=0)) for v, each in zip(tried, trials, strict=True)]
    to_given, to_other = (
        [_cosine(v, np.asarray(given[each.speaker])) for v, each in zip(tried, side, strict=True)]
        for side in (trials, others)
    )
    # Two speakers may have one target.
    compared = [one > other for one, other in zip(to_given, to_other, strict=True) if one != other]
    return {
        "nearer_than_own": float(np.mean(np.greater(to_given, to_own))),
        "nearer_than_other": float(np.mean(compared)),
    }


def _find_given(method: Anonymizer, judges: Judges, speaker: str, voice: PseudoSpeaker) -> Floats | None:
    """What a voice sounds like, to the first encoder."""
    first = _first_recordings()
    if voice.target:
        return _voice_vector(judges, {voice.target: 1.0}, first, ENCODERS[0])
    if voice.vector:
        vector = read_vector(voice.vector).astype(np.float64)
        pool = read_pool()
        nearest = np.argsort(-(pool.vectors @ vector), kind="stable")[:5]
        return _voice_vector(judges, {pool.names[row]: 1.0 for row in nearest}, first, ENCODERS[0])
    if not voice.mixture:
        return None
    if set(voice.mixture) <= set(first):
        return _voice_vector(judges, voice.mixture, first, ENCODERS[0])
    other = next(each for each in judges.sides["enrolment"] if each.speaker != speaker)
    [spoken] = method.anonymize_batch([Item(other.samples, voice)], RATE_HZ)
    return judges.embed([spoken])[ENCODERS[0]][0]


def _first_recordings() -> dict[str, str]:
    """A recording of each speaker of ``../shared/speech-train``, by the speaker."""
    with (TARGET_SPEECH / "utterances.csv").open(encoding="utf-8", newline="") as file:
        return {row["speaker"]: row["path"] for row in csv.DictReader(file)}


def _voice_vector(judges: Judges, mixture: Mapping[str, float], paths: Mapping[str, str], encoder: str) -> Floats:
    return np.mean([judges.embed_recording(paths[name], encoder) for name in mixture], axis=0)


def _cosine(one: Floats, other: Floats) -> float:
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))


def refuse_other_speech(file: Path, about: Mapping[str, Any]) -> None:
    """Raise ValueError where what is kept was measured on other speech."""
    kept = tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    for key in ("speech", "acceptance_speech"):
        if key in about and kept.get(key) and kept[key] != about[key]:
            raise ValueError(
                f"{file}: {key}: expected “{kept[key]}”, on which the other methods were measured, found "
                f"“{about[key]}”. Measure all methods, or name another file by --out."
            )


def keep(file: Path, about: Mapping[str, Any], name: str, found: Mapping[str, Any], *, is_whole: bool = False) -> None:
    """Add to the entries of a method; replace those of another version of it.

    The rows of the original and of its copies stay as they are where there are any, since what all others are said to
    be rests on them, unless all methods are measured (`is_whole`). Then entries that were measured on other speech go.
    """
    if not is_whole:
        refuse_other_speech(file, about)
    kept = tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    if "speech" in about and kept.get("speech") != about["speech"]:
        kept = {}
    if "acceptance_speech" in about and kept.get("acceptance_speech") != about["acceptance_speech"]:
        for numbers in kept.get("methods", {}).values():
            for key in ("nearer_than_own", "nearer_than_other"):
                numbers.pop(key, None)
    methods = kept.get("methods", {})
    before = methods.get(name, {})
    own = before if before.get("version") == found["version"] else {}
    lines = ["# Written by `python -m benchmarks.anonymizers --parts comparison`; shares as fractions, G_VD in dB."]
    told = {key: about.get(key, kept.get(key, "")) for key in _TOLD}
    lines += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in told.items()]
    for speech in ("original", "copied"):
        lines += ["", f"[{speech}]", *_rows(_join(kept.get(speech, {}), about.get(speech, {}), is_whole))]
    for method, numbers in sorted({**methods, name: {**own, **found}}.items()):
        lines += ["", f"[methods.{method}]", *_rows(numbers)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _join(kept: dict[str, Any], measured: dict[str, Any], is_whole: bool) -> dict[str, Any]:
    return kept | measured if is_whole else measured | kept


def document_rows(found: Measurements) -> list[str]:
    """The lines of the table in docs/methods.md, that of the original speech first."""
    heads = found.heads
    lines = [f"| {' | '.join(['method', *heads])} |", "| --- |" + " ---: |" * len(heads)]
    rows = {"original speech": found.original, "copies by HiFi-GAN": found.copied}
    for name, one in found.methods.items():
        marks = ", ".join(found.find_shortfalls(one))
        rows[f"`{name}` ({marks})" if marks else f"`{name}`"] = one
    for name, one in rows.items():
        cells = (f"{cell.text} ({cell.interval})" if cell.interval else cell.text for cell in found.row(one))
        lines.append(f"| {' | '.join([name, *cells])} |")
    return lines


SLOTS = ("content", "voice", "prosody", "synthesis")


def document_recipes(methods: Sequence[Anonymizer]) -> list[str]:
    """The lines of the table of recipes in docs/methods.md, as table III of the results paper of 2022: the parts of
    each method that is put together of some, and the state of each part."""
    lines = [f"| {' | '.join(['recipe', 'fidelity', *SLOTS, 'duration'])} |", "| --- |" + " --- |" * (len(SLOTS) + 2)]
    for method in methods:
        parts = {part.slot: f"{part.title} ({part.state})" for part in getattr(method, "pipeline", ())}
        if parts:
            kept = "kept" if keeps_duration(method) else "another"
            cells = [
                f"`{method.name}`",
                getattr(method, "fidelity", ""),
                *(parts.get(slot, "–") for slot in SLOTS),
                kept,
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def _rows(numbers: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {_written(value)}" for key, value in numbers.items()]


def _written(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_written(each)}" for key, each in value.items()) + " }"
    return repr(round(value, 6)) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
