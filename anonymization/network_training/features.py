"""What a decoder learns from: content, F0, spectrum and speaker vector of each utterance, kept in files.

Content is also taken from copies with other formants and F0, drawn from the utterance itself; they say the same at the
same times. A file is named after the samples, so that a training that is begun anew finds it.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anonymization.methods.world.method import WorldParameters, world_voice
from common.arrays import Floats32, Samples
from common.atomic_write import write_atomically
from common.errors import InputError
from common.progress import Count, ignore_progress
from evaluation.attackers.training.corpus import TrainingUtterance, read_checked
from speech.encoders import registry as encoders
from speech.model_files.devices import Device
from speech.pitch.estimators import track_f0_praat

if TYPE_CHECKING:
    from speech.encoders.contract import SpeakerEncoder
    from speech.features.whisper_layers import WhisperLayers


RATE_HZ = 16_000
SPEAKER_ENCODER = "ge2e"
# Shorter speech has no vector of its speaker.
SHORTEST_S = 1.0
_VERSION = "1"
_MEANS_HZ, _SPREADS, _FACTORS = (90.0, 230.0), (1.5, 4.5), (0.8, 1.25)


@dataclass(frozen=True, eq=False)
class Features:
    """Of one utterance.

    layers: of the original and its copies, shape (1 + copies, frames of content, inputs), float16. spectrum: shape
    (frames, 80), or parameters of WORLD in its place, (frames, 81), float16. intonation: shape (frames, 2). hz: F0 of
    its voiced frames, shape (voiced,). vector: of the speaker, shape (256,).
    """

    layers: NDArray[np.float16]
    spectrum: NDArray[np.float16]
    intonation: Floats32
    hz: Floats32
    vector: Floats32


class FeatureReader:
    """Encoders in memory, and the folder that keeps what they gave."""

    def __init__(self, folder: Path, variants: int, device: Device = "cpu", *, for_world: bool = False) -> None:
        from speech.features import whisper_layers

        self._folder, self._variants, self._for_world = folder, variants, for_world
        self._layers: WhisperLayers = whisper_layers.load(device)
        self._speakers: SpeakerEncoder = encoders.load(SPEAKER_ENCODER, device)
        folder.mkdir(parents=True, exist_ok=True)

    def read(self, utterance: TrainingUtterance) -> Features:
        """Return the features of an utterance, of its file where there is one.

        Raises:
            InputError: audio that cannot be read, is silent or shorter than a second.
        """
        samples = read_checked(utterance)
        if samples.size < SHORTEST_S * RATE_HZ or not samples.any():
            raise InputError(
                f"{utterance.identifier}: expected at least {SHORTEST_S:g} s of speech, found "
                f"{samples.size / RATE_HZ:.2g} s{'' if samples.any() else ' of silence'}. Leave it out."
            )
        kind = f"{_VERSION}|{self._variants}|{'world|' if self._for_world else ''}"
        digest = hashlib.sha256(kind.encode() + samples.tobytes()).hexdigest()
        path = self._folder / f"{digest[:32]}.npz"
        if not path.is_file():
            content = io.BytesIO()
            np.savez(content, **self._measure(samples, int(digest[:16], 16)))  # type: ignore[arg-type]
            write_atomically(path, content.getvalue())
        with np.load(path, allow_pickle=False) as kept:
            return Features(**{name: kept[name] for name in kept.files})

    def _measure(self, samples: Samples, seed: int) -> dict[str, NDArray[np.generic]]:
        from speech.conversion import content_decoder as decoder
        from speech.conversion.world_decoder import parameters_at_loudness

        draw = np.random.default_rng(seed)
        sounds = [samples, *(world_voice(samples, RATE_HZ, _draw(draw)) for _ in range(self._variants))]
        layers = np.stack([decoder.content_layers(each, self._layers) for each in sounds])
        track = track_f0_praat(samples, RATE_HZ)
        spectrum = parameters_at_loudness(samples, track) if self._for_world else decoder.spectrum_at_loudness(samples)
        contour = decoder.contour_at_spectra(track, len(spectrum))
        return {
            "layers": layers.astype(np.float16),
            "spectrum": spectrum.astype(np.float16),
            "intonation": decoder.intonation(contour),
            "hz": contour[contour > 0].astype(np.float32),
            "vector": self._speakers.embed([samples], RATE_HZ)[0],
        }


def read_features(
    utterances: Sequence[TrainingUtterance],
    folder: Path,
    variants: int,
    progress: Count = ignore_progress,
    device: Device = "cpu",
    *,
    for_world: bool = False,
) -> list[Features]:
    """Return the features of all utterances, in their order; what was measured before is read.

    Args:
        for_world: with parameters of WORLD in place of spectra.

    Raises:
        InputError: utterances that cannot be used; names all of them.
        InputError: parameters of WORLD, and pyworld is absent.
    """
    reader = FeatureReader(folder, variants, device, for_world=for_world)
    found, problems = [], []
    for number, utterance in enumerate(utterances):
        progress(number, len(utterances))
        try:
            found.append(reader.read(utterance))
        except InputError as error:
            problems.append(str(error))
    progress(len(utterances), len(utterances))
    if problems:
        raise InputError(" ".join(problems))
    return found


def _draw(draw: np.random.Generator) -> WorldParameters:
    mean, factor = (float(np.exp(draw.uniform(*np.log(span)))) for span in (_MEANS_HZ, _FACTORS))
    return WorldParameters(f0_mean_hz=mean, f0_spread_semitones=float(draw.uniform(*_SPREADS)), formant_factor=factor)
