"""Attackers that know speakers by their voice, and what they detect in anonymised speech.

An ear turns one utterance into a vector. The long-term spectrum is always there; a ResNet34 of WeSpeaker in ONNX form
(input [1, frames, 80], Kaldi's log mel energies less their mean) is used where its file is named and onnxruntime is
installed; neither belongs to the portal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks._speech import RATE_HZ, Speech, Utterance
from common.arrays import Floats, Samples

Ear = Callable[[Samples, int], Floats]
Vectors = dict[str, Floats]

BANDS = 80
WINDOW, HOP, SIZE = 400, 160, 512


def long_term_spectrum() -> Ear:
    from speech.encoders.long_term_spectrum import speaker_vector

    return speaker_vector


def wespeaker(model: Path) -> Ear:
    """The engine of a file. Raises ImportError without onnxruntime, and what that raises for a file it cannot read."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    [name] = [entry.name for entry in session.get_inputs()]

    def listen(samples: Samples, rate_hz: int) -> Floats:
        if rate_hz != RATE_HZ:
            raise ValueError(f"The engine takes {RATE_HZ} Hz, found {rate_hz} Hz.")
        energies = kaldi_energies(samples)
        vector = session.run(None, {name: (energies - energies.mean(axis=0))[None].astype(np.float32)})[0]
        return np.asarray(vector, np.float64).ravel()

    return listen


def kaldi_energies(samples: Samples) -> Floats:
    """Log mel energies as Kaldi's `compute-fbank-feats`, no dither, Hamming window; shape (frames, 80)."""
    signal = samples.astype(np.float64)
    frames = np.lib.stride_tricks.sliding_window_view(np.pad(signal, (0, max(0, WINDOW - signal.size))), WINDOW)[::HOP]
    frames = frames - frames.mean(axis=1, keepdims=True)
    emphasised = frames - 0.97 * np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)
    power = np.abs(np.fft.rfft(emphasised * np.hamming(WINDOW), SIZE)) ** 2
    return np.log(np.maximum(power[:, : SIZE // 2] @ _triangles().T, np.finfo(np.float32).eps))


@cache
def _triangles() -> Floats:
    """Kaldi's mel bands from 20 Hz to half the rate, shape (80, 256): triangles on the mel scale."""
    edges = np.linspace(_mel(20.0), _mel(RATE_HZ / 2), BANDS + 2)
    mels = _mel(np.arange(SIZE // 2) * RATE_HZ / SIZE)
    rising = (mels - edges[:-2, None]) / (edges[1] - edges[0])
    falling = (edges[2:, None] - mels) / (edges[1] - edges[0])
    return np.maximum(0.0, np.minimum(rising, falling))


def _mel(hertz: float | Floats) -> Floats:
    return np.asarray(1127.0 * np.log(1.0 + np.asarray(hertz) / 700.0))


def compute_vectors(ear: Ear, utterances: Sequence[Utterance], sounds: Sequence[Samples]) -> Vectors:
    return {each.name: ear(samples, RATE_HZ) for each, samples in zip(utterances, sounds, strict=True)}


def trial_scores(
    enrolment: Sequence[Utterance], models: Vectors, trials: Sequence[Utterance], tests: Vectors
) -> tuple[list[float], list[float]]:
    """Target and nontarget scores: each trial against every speaker of its gender and corpus."""
    from speech.encoders.long_term_spectrum import score_trials

    of_speaker: dict[str, list[Floats]] = defaultdict(list)
    place = {}
    for utterance in enrolment:
        of_speaker[utterance.speaker].append(models[utterance.name])
        place[utterance.speaker] = (utterance.gender, utterance.corpus)
    pairs = [
        (speaker, trial.name)
        for trial in trials
        for speaker in of_speaker
        if place[speaker] == (trial.gender, trial.corpus)
    ]
    owner = {trial.name: trial.speaker for trial in trials}
    target: list[float] = []
    nontarget: list[float] = []
    for speaker, name, score in score_trials(of_speaker, tests, pairs):
        (target if owner[name] == speaker else nontarget).append(score)
    return target, nontarget


@dataclass(frozen=True)
class Rates:
    """What an attacker finds out, as shares that are wrong.

    Attributes:
        ignorant: EER (Kaldi's) of original enrolment against anonymised trials.
        lazy_informed: the same with enrolment that was anonymised too.
        own_voices: EER of telling whether two trial utterances have the same voice, genders and corpora mixed.
    """

    ignorant: float
    lazy_informed: float
    own_voices: float


@dataclass(frozen=True)
class Attacker:
    """An ear that knows the original speech. original: vectors of enrolment and of trials."""

    name: str
    ear: Ear
    original: tuple[Vectors, Vectors]

    def unprotected(self, speech: Speech) -> Rates:
        """Of original speech."""
        return self._rates(speech, [self.original])

    def attack(self, speech: Speech, outputs: Sequence[tuple[Sequence[Samples], Sequence[Samples]]]) -> Rates:
        """Of anonymised speech, enrolment and trials, in the voices of one or more plans; their scores are pooled."""
        sides = speech.side("enrolment"), speech.side("trial")
        return self._rates(
            speech,
            [
                (compute_vectors(self.ear, sides[0], enrolled), compute_vectors(self.ear, sides[1], tried))
                for enrolled, tried in outputs
            ],
        )

    def _rates(self, speech: Speech, heard: Sequence[tuple[Vectors, Vectors]]) -> Rates:
        from evaluation.metrics.detection import kaldi_eer

        enrolment, trials = speech.side("enrolment"), speech.side("trial")
        rates = []
        for models in ([self.original[0] for _ in heard], [enrolled for enrolled, _ in heard]):
            target: list[float] = []
            nontarget: list[float] = []
            for enrolled, (_, tests) in zip(models, heard, strict=True):
                found = trial_scores(enrolment, enrolled, trials, tests)
                target += found[0]
                nontarget += found[1]
            rates.append(kaldi_eer(target, nontarget))
        return Rates(rates[0], rates[1], _rate_between_voices(heard[0][1], trials))


def _rate_between_voices(vectors: Vectors, trials: Sequence[Utterance]) -> float:
    """EER of telling pairs of utterances of one voice from pairs of two, by the cosine of scaled vectors."""
    from evaluation.metrics.detection import speechbrain_eer

    values = np.stack([vectors[trial.name] for trial in trials]).astype(np.float64)
    values = (values - values.mean(axis=0)) / np.maximum(values.std(axis=0), 1e-12)
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    one, other = np.triu_indices(len(trials), 1)
    speakers = np.array([trial.speaker for trial in trials])
    is_same, likeness = speakers[one] == speakers[other], (values @ values.T)[one, other]
    return speechbrain_eer(likeness[is_same], likeness[~is_same])


def attackers(speech: Speech, model: Path | None) -> list[Attacker]:
    """The long-term spectrum and, where its model is named, WeSpeaker."""
    ears = {"long-term spectrum": long_term_spectrum()}
    if model is not None:
        ears["WeSpeaker ResNet34"] = wespeaker(model)
    found = []
    for name, ear in ears.items():
        enrolment, trial = (
            compute_vectors(ear, side, [each.samples for each in side])
            for side in (speech.side("enrolment"), speech.side("trial"))
        )
        found.append(Attacker(name, ear, (enrolment, trial)))
    return found
