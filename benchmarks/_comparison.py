"""All methods on the same few utterances: words, attackers, intonation, distinct voices, speed; kept in one file.

Speech: speakers of LibriSpeech test-other, who are in none of its training parts; of each the shortest utterances of
three seconds and more, half for enrolment, half for trials. Methods with targets get two of LibriSpeech
train-clean-100, a woman and a man with 25 minutes each, from ``../shared/speech-train``. The file is
`anonymization/methods/measured.toml`, which pages and documents read; a method that is not measured keeps its entry.
"""

from __future__ import annotations

import csv
import json
import time
import tomllib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

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
from anonymization.methods.voices.targets import DEFAULT_SELECTION, Source, plan_targets
from benchmarks._attackers import trial_scores
from benchmarks._speech import RATE_HZ, SPEECH, Samples, Speech, Utterance
from common.rounding import fixed

CORPUS = "librispeech-test-other"
TARGET_SPEECH = Path("../shared/speech-train")
SHORTEST_S = 3.0
RECOGNIZER = "moonshine-tiny"
ENCODERS = ("wespeaker-resnet34", "ge2e")
SEED = 2026

Floats = npt.NDArray[np.float64]


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
        self._recognizer = recognizers.load(RECOGNIZER)
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

    def word_errors(self, sounds: Sequence[Samples]) -> float:
        """Of the trials, as a share of the words."""
        from evaluation.metrics.word_errors import count_word_errors

        names = [each.name for each in self.sides["trial"]]
        heard = {
            name: self._plain(text)
            for name, text in zip(names, self._recognizer.transcribe(sounds, RATE_HZ), strict=True)
        }
        rate = count_word_errors({name: self._words[name] for name in names}, heard).honest.error_rate
        assert rate is not None
        return rate

    def error_rates(self, enrolled: Mapping[str, Floats], tried: Mapping[str, Floats]) -> dict[str, float]:
        """EER (Kaldi's) by encoder: every trial against all speakers of its gender."""
        from evaluation.metrics.detection import kaldi_eer

        rates = {}
        for name in ENCODERS:
            models, tests = (
                dict(zip([each.name for each in self.sides[role]], vectors[name], strict=True))
                for role, vectors in (("enrolment", enrolled), ("trial", tried))
            )
            rates[name] = kaldi_eer(*trial_scores(self.sides["enrolment"], models, self.sides["trial"], tests))
        return rates

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


def plan(method: Anonymizer, speech: Speech, role: Any, options: Options | None = None) -> dict[str, PseudoSpeaker]:
    """The voice of each speaker in a role."""
    speakers = {each.speaker: each.gender.lower() for each in speech.utterances}
    if takes_targets(method):
        sources = [Source("", speaker, gender, role, "bench", "speaker") for speaker, gender in speakers.items()]
        assigned = plan_targets(sources, read_targets().targets, DEFAULT_SELECTION, seed=SEED)
        return {each.speaker: each.voice for each in assigned}
    if not plans_voices(method):
        planned = plan_voices(method.parameters, seed=SEED, role=role, split="bench", speakers=speakers)
        return dict(planned.voices)
    requests = [
        VoiceRequest(
            pseudo_speaker_key(seed=SEED, role=role, split="bench", speaker=speaker),
            gender,
            tuple(partial(_given, each.samples) for each in speech.side(role) if each.speaker == speaker),
            options or {},
        )
        for speaker, gender in speakers.items()
    ]
    return dict(zip(speakers, plan_requests(method, requests), strict=True))


def _given(samples: Samples) -> tuple[Samples, int]:
    return samples, RATE_HZ


def measure(method: Anonymizer, judges: Judges, options: Options | None = None) -> dict[str, Any]:
    """All numbers of a method, as they are kept."""
    outputs: dict[str, list[Samples]] = {}
    work_s = 0.0
    for role, side in judges.sides.items():
        voices = plan(method, judges.speech, role, options)
        items = [Item(each.samples, voices[each.speaker]) for each in side]
        one_of_each = {item.pseudo_speaker.target: item for item in items}
        method.anonymize_batch(list(one_of_each.values()), RATE_HZ, options=options)  # loads, outside of the time
        began = time.process_time()
        outputs[role] = method.anonymize_batch(items, RATE_HZ, options=options)
        work_s += time.process_time() - began
    enrolled, tried = (judges.embed(outputs[role]) for role in ("enrolment", "trial"))
    return {
        "version": method.version,
        "word_errors": judges.word_errors(outputs["trial"]),
        "ignorant": judges.error_rates(judges.original["enrolment"], tried),
        "lazy_informed": judges.error_rates(enrolled, tried),
        "rho_f0": judges.pitch_correlation(outputs["trial"]),
        "gvd_db": judges.gain_of_distinctiveness(tried),
        "work_per_second": work_s / judges.speech.duration_s,
    }


def compare(
    methods: Sequence[Anonymizer], n_speakers: int, per_speaker: int, sweep: tuple[str, Sequence[float]] | None = None
) -> None:
    """Measure the methods and keep each as soon as it is measured.

    sweep: an option and the values that are tried, of which nothing is kept but what is printed.
    """
    speech, words = read_test_speech(n_speakers, per_speaker)
    judges = Judges(speech, words)
    trials = judges.sides["trial"]
    about = {
        "date": datetime.now(UTC).date().isoformat(),
        "speech": f"LibriSpeech test-other, {n_speakers} speakers, {len(speech.utterances)} utterances, "
        f"{speech.duration_s:.0f} s, {len(trials)} of them trials",
        "recognizer": RECOGNIZER,
        "encoders": list(ENCODERS),
        "original": {
            "word_errors": judges.word_errors([each.samples for each in trials]),
            "unprotected": judges.error_rates(judges.original["enrolment"], judges.original["trial"]),
        },
    }
    print(json.dumps(about, indent=1), flush=True)
    for each in methods:
        method = each.prepare(read_targets()) if takes_targets(each) else each
        if sweep is not None:
            for value in sweep[1]:
                found = measure(method, judges, {sweep[0]: value})
                print(f"{method.name} {sweep[0]}={value:g}", json.dumps(found), flush=True)
            continue
        found = measure(method, judges)
        print(method.name, json.dumps(found), flush=True)
        keep(FILE, about, method.name, found)


def print_acceptance(methods: Sequence[Anonymizer], n_speakers: int, per_speaker: int) -> None:
    """Whether trials sound like the voice that they were given, by an encoder that made neither, and what the vocoder
    alone costs.

    An output is compared by cosine with the speakers of its voice (one recording of each, their mean vector), with the
    enrolment recordings of its own speaker, and with the voice of another trial in place of its own. Only methods whose
    voices are mixtures of speakers of ``../shared/speech-train`` have such recordings.
    """
    from speech.audio.files import resample, to_pcm16
    from speech.vocoders import hifigan

    speech, words = read_test_speech(n_speakers, per_speaker)
    judges = Judges(speech, words)
    trials = judges.sides["trial"]
    own: dict[str, list[Floats]] = {}
    for each, vector in zip(judges.sides["enrolment"], judges.original["enrolment"][ENCODERS[0]], strict=True):
        own.setdefault(each.speaker, []).append(vector)
    vocoder = hifigan.load()
    spectra = [
        hifigan.log_mel(resample(each.samples, RATE_HZ, hifigan.RATE_HZ).astype(np.float32) / np.float32(32768))
        for each in trials
    ]
    copies = [resample(to_pcm16(sound), hifigan.RATE_HZ, RATE_HZ) for sound in vocoder.synthesize(spectra)]
    print(f"copy by HiFi-GAN: word errors {judges.word_errors(copies):.4f}", flush=True)
    with (TARGET_SPEECH / "utterances.csv").open(encoding="utf-8", newline="") as file:
        first = {row["speaker"]: row["path"] for row in csv.DictReader(file)}
    for method in methods:
        voices = plan(method, speech, "trial")
        mixtures = {speaker: voice.mixture for speaker, voice in voices.items()}
        if not all(mixture and set(mixture) <= set(first) for mixture in mixtures.values()):
            continue
        given = {speaker: _voice_vector(judges, mixture, first) for speaker, mixture in mixtures.items()}
        outputs = method.anonymize_batch([Item(each.samples, voices[each.speaker]) for each in trials], RATE_HZ)
        found = judges.embed(outputs)[ENCODERS[0]]
        others = [*trials[len(trials) // 2 :], *trials[: len(trials) // 2]]
        to_own = [_cosine(v, np.mean(own[each.speaker], axis=0)) for v, each in zip(found, trials, strict=True)]
        to_given, to_other = (
            [_cosine(v, given[each.speaker]) for v, each in zip(found, side, strict=True)] for side in (trials, others)
        )
        print(
            f"{method.name}: nearer to the given voice than to the own in {np.mean(np.greater(to_given, to_own)):.0%} "
            f"of {len(trials)} trials (cosines {np.mean(to_given):.2f}, {np.mean(to_own):.2f}); nearer to it than to "
            f"that of another trial in {np.mean(np.greater(to_given, to_other)):.0%} ({np.mean(to_other):.2f})",
            flush=True,
        )


def _voice_vector(judges: Judges, mixture: Mapping[str, float], paths: Mapping[str, str]) -> Floats:
    import soundfile

    sounds = [soundfile.read(TARGET_SPEECH / paths[name], dtype="int16")[0] for name in mixture]
    vectors = judges.embed(sounds)[ENCODERS[0]]
    return np.mean(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), axis=0)


def _cosine(one: Floats, other: Floats) -> float:
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))


def keep(file: Path, about: Mapping[str, Any], name: str, found: Mapping[str, Any]) -> None:
    """Replace the entry of a method; entries that were measured on other speech or by other judges go."""
    kept = tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    others = kept.get("methods", {}) if kept.get("speech") == about["speech"] else {}
    lines = ["# Written by `python -m benchmarks.anonymizers --parts comparison`; shares as fractions, G_VD in dB."]
    lines += [f"{key} = {json.dumps(about[key], ensure_ascii=False)}" for key in ("date", "speech", "recognizer")]
    lines += [f"encoders = {json.dumps(about['encoders'])}", "", "[original]", *_rows(about["original"])]
    for method, numbers in sorted({**others, name: dict(found)}.items()):
        lines += ["", f"[methods.{method}]", *_rows(numbers)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def document_rows(found: Measurements) -> list[str]:
    """The lines of the table in docs/methods.md, that of the original speech first."""
    heads = [f"EER {name}, {kind}" for name in found.encoders for kind in ("ignorant", "lazy-informed")]
    cells = ["method", "word errors", *heads, "ρF0", "G_VD", "work per second"]
    lines = [f"| {' | '.join(cells)} |", "| --- |" + " ---: |" * (len(cells) - 1)]
    unprotected = [cell for name in found.encoders for cell in (_percent(found.unprotected[name]), "–")]
    lines.append(f"| {' | '.join(['original speech', _percent(found.word_errors), *unprotected, '1', '0', '–'])} |")
    for name, one in found.methods.items():
        rates = [_percent(kind[encoder]) for encoder in found.encoders for kind in (one.ignorant, one.lazy_informed)]
        end = [f"{one.rho_f0:.2f}", f"{one.gvd_db:.1f} dB", f"{one.work_per_second:.3f} s"]
        lines.append(f"| {' | '.join([f'`{name}`', _percent(one.word_errors), *rates, *end])} |")
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


def _percent(share: float) -> str:
    return f"{fixed(100 * share, 1)}%"


def _rows(numbers: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {_written(value)}" for key, value in numbers.items()]


def _written(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_written(each)}" for key, each in value.items()) + " }"
    return f"{value:.4f}" if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
