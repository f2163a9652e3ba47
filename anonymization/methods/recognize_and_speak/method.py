"""Speech is recognised and the words are synthesised, in a voice mixed for each speaker.

Nothing but the words goes through: voice, melody, timing and loudness are the synthesiser's, the mean level excepted.
What the recogniser mishears is said wrongly, what it does not hear is lost, and English is written whatever is spoken.

After system T04 of the VoicePrivacy 2022 challenge (Meyer, Tilli, Denisov, Lux, Koch, Vu), which recognises phonemes,
draws the voice from a generative network of speaker vectors and speaks by FastSpeech 2 and HiFi-GAN; here are other
models and a mixture of ready voices. After system T11 (Yao and others) a voice is a few speakers in equal parts, drawn
towards the average voice by a weight that is the same for all. Conventions: samples are int16, mono,
16 kHz.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock
from typing import cast

import numpy as np

from anonymization.methods.contract import (
    Described,
    MethodError,
    OptionValue,
    PseudoSpeaker,
    TargetPool,
    VoicedUtterance,
    VoiceRequest,
    validate_samples,
)
from anonymization.methods.method_files import read_methods
from anonymization.methods.voices.gender import guess_gender
from anonymization.methods.world.method import Level, set_level
from common.arrays import Floats32, Samples
from common.errors import InputError
from speech.recognizers import registry as recognizers
from speech.recognizers.contract import Recognizer
from speech.recognizers.long_recordings import list_pieces
from speech.synthesizers import kokoro

RATE_HZ = 16_000
# What is spoken at once: as much as the recogniser hears at once.
_PIECE_S = 30.0
_PAUSE_S = 0.3
# Shares below this are inaudible; without them a voice is short to write.
_SMALLEST_SHARE = 0.01


@dataclass(frozen=True)
class RecognizeAndSpeak(Described):
    """Speech is recognised and its words are synthesised, in a voice that is mixed for each speaker
    of the synthesiser's voices of the same gender. Melody, timing and accent are the synthesiser's; what is misheard is
    said wrongly.

    recognizer: a name of `speech.recognizers.registry`; concentration: of the Dirichlet distribution of the shares,
    small where few voices make a mixture, large where the parts are nearly equal; n_voices: that make a mixture, 0 for
    all.
    """

    recognizer: str = field(kw_only=True)
    concentration: float = field(default=1.0, kw_only=True)
    n_voices: int = field(default=0, kw_only=True)

    def missing(self) -> str:
        return recognizers.explain_missing(recognizers.find_engine(self.recognizer)) or kokoro.missing()

    def plan_voices(
        self,
        requests: Sequence[VoiceRequest],
        pool: TargetPool | None = None,  # noqa: ARG002 - of the protocol; the voices are the synthesiser's
    ) -> list[PseudoSpeaker]:
        """Return each voice by its key alone, among those of the gender: as told, else by the median F0 of
        recordings."""
        return [self._mix(request.key, request.gender or guess_gender(request.recordings)) for request in requests]

    def _mix(self, key: str, gender: str) -> PseudoSpeaker:
        names = kokoro.voices_of_gender(gender if gender in ("f", "m") else "")
        seed = int.from_bytes(hashlib.sha256(f"{key}|mixture".encode()).digest(), "big")
        draw = np.random.default_rng(seed)
        if self.n_voices:
            shares = np.zeros(len(names))
            chosen = draw.choice(len(names), self.n_voices, replace=False)
            shares[chosen] = draw.dirichlet(np.full(self.n_voices, self.concentration))
        else:
            shares = draw.dirichlet(np.full(len(names), self.concentration))
        shares = np.where(shares < _SMALLEST_SHARE, 0.0, shares)
        shares /= shares.sum()
        mixture = {name: round(float(share), 4) for name, share in zip(names, shares, strict=True) if share > 0}
        return PseudoSpeaker(key, {}, mixture=mixture)

    def _anonymize(self, item: VoicedUtterance, rate: int, options: dict[str, OptionValue], threads: int) -> Samples:  # noqa: ARG002 - of others
        """Digital silence stays, and what holds no word becomes silence of its length: no sound of it is kept."""
        samples = item.samples
        validate_samples(self.name, samples, rate, low_hz=RATE_HZ, high_hz=RATE_HZ)
        if not item.pseudo_speaker.mixture:
            raise MethodError(f"{self.name} takes a voice that is a mixture, as it plans them; found one that is not.")
        mixture = mix_with_average(item.pseudo_speaker.mixture, float(cast("float", options.get("weight", 0.0))))
        spoken: list[Floats32] = []
        try:
            for text in self._hear(samples):
                sound = kokoro.shared().speak(text, mixture)
                if sound.size:
                    spoken += [np.zeros(round(_PAUSE_S * kokoro.RATE_HZ), np.float32)] * bool(spoken) + [sound]
        except InputError as error:
            raise MethodError(str(error)) from error
        if not spoken:
            return np.zeros_like(samples)
        return set_level(_at_rate(np.concatenate(spoken)), samples, cast("Level", options["level"]))

    def _hear(self, samples: Samples) -> Iterable[str]:
        """Yield what is said in each piece, in their order."""
        for piece in list_pieces(samples, _PIECE_S):
            with _TURN:
                [text] = _recognizer(self.recognizer, os.getpid()).transcribe([piece], RATE_HZ)
            if text:
                yield text


def mix_with_average(mixture: Mapping[str, float], weight: float) -> Mapping[str, float]:
    """Return a mixture of which a part, 0 to 1, is the mean of all voices of the synthesiser."""
    if not weight:
        return mixture
    whole = sum(mixture.values())
    rest = weight / len(kokoro.VOICES)
    return {name: (1 - weight) * mixture.get(name, 0.0) / whole + rest for name in kokoro.VOICES}


# A recogniser serves one thread at a time.
_TURN = Lock()


@lru_cache(maxsize=2)
def _recognizer(name: str, process: int) -> Recognizer:  # noqa: ARG001 - a forked process loads its own
    return recognizers.load(name)


def _at_rate(sound: Floats32) -> Floats32:
    import soxr

    resampled: Floats32 = soxr.resample(sound, kokoro.RATE_HZ, RATE_HZ, quality="VHQ")
    return resampled


METHODS = tuple(RecognizeAndSpeak(**about) for about in read_methods(__file__))
