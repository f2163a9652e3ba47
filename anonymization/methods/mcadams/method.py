"""B2, the McAdams anonymiser of the VoicePrivacy Challenge, in its three editions: resonances of the voice are moved.

Source: Patino, Tomashenko, Todisco, Nautsch, Evans, "Speaker anonymisation using the McAdams
coefficient", Interspeech 2021, as the challenge's own program computes it. What that program does at
the edges, to silence and to the level is an option each; only digital silence differs by default.

Conventions: samples are int16, mono, 16 kHz; pole angles are in radians, so 1 rad is 2546 Hz; an
alpha below 1 raises the resonances under that frequency and lowers those above it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from anonymization.methods.contract import (
    Method,
    MethodError,
    Options,
    OptionValue,
    VoicedUtterance,
    complete_options,
    validate_samples,
    validate_voice,
)
from anonymization.methods.mcadams import numba_engine, torch_engine
from anonymization.methods.mcadams.parameters import PEAK, RATE_HZ, Level, McAdamsParameters
from anonymization.methods.method_files import read_methods
from common.arrays import Floats, Samples

Edition = Literal[2020, 2022, 2024]

_ALPHA_2020 = 0.8
_BLOCK_SAMPLES = 1 << 20


def mcadams(samples: Samples, rate: int, parameters: McAdamsParameters, *, threads: int = 1) -> Samples:
    """Anonymise one utterance.

    samples: int16, shape (n,), n ≥ 0, 16 kHz mono; not changed.
    threads: how many share the work, at least 1; the output is the same for any number. The compiled
        engine needs no threading layer, so it may be called in a forked worker and from several
        threads at once; the torch engine in a forked worker only if its parent used one thread.

    Returns int16, shape (n,). Too short for a frame that is filtered (480 samples; 320 with the first
    frame, any length with first frame and tail) gives zeros.
    Raises MethodError where samples, rate or threads are not as above, or the engine is not there.

    >>> second = np.random.default_rng(1).normal(0, 1000, 16_000).astype(np.int16)
    >>> anonymised = mcadams(second, 16_000, McAdamsParameters(alpha=0.8))
    >>> anonymised.shape, int(abs(anonymised).max())
    ((16000,), 32766)
    """
    return mcadams_batch([samples], rate, [parameters], threads=threads)[0]


def mcadams_batch(
    utterances: Sequence[Samples], rate: int, parameters: Sequence[McAdamsParameters], *, threads: int = 1
) -> list[Samples]:
    """Anonymise utterances, each by its own parameters, which differ in alpha alone; the same as one by one.

    The compiled engine shares the utterances, or a single one, among the threads, the longest first; torch filters
    frames of all utterances at once. Beside input and output, memory is needed for a few utterances only.

    Args, returns and raises as `mcadams`, for each; MethodError also where more than alpha differs.
    """
    for samples in utterances:
        validate_samples("B2", samples, rate, low_hz=RATE_HZ, high_hz=RATE_HZ)
    if threads < 1:
        raise MethodError(f"At least one thread is needed; found threads={threads}.")
    if len(utterances) != len(parameters):
        raise MethodError(
            f"Each utterance needs its parameters; found {len(utterances)} utterances and {len(parameters)} parameters."
        )
    if len({replace(each, alpha=1.0) for each in parameters}) > 1:
        raise MethodError("Utterances of one batch may differ in alpha alone; found other parameters that differ, too.")
    if parameters and parameters[0].engine == "torch":
        bent = torch_engine.bend_poles(utterances, parameters, threads=threads)
        return [_set_level(*each) for each in zip(bent, utterances, (one.level for one in parameters), strict=True)]
    return _run_compiled(utterances, parameters, threads)


def _run_compiled(
    utterances: Sequence[Samples], parameters: Sequence[McAdamsParameters], threads: int
) -> list[Samples]:
    workers = max(1, min(threads, len(utterances)))

    def bend(i: int) -> Samples:
        bent = numba_engine.bend_poles(utterances[i], parameters[i], threads // workers)
        return _set_level(bent, utterances[i], parameters[i].level)

    longest_first = sorted(range(len(utterances)), key=lambda i: -utterances[i].size)
    made = dict(zip(longest_first, numba_engine.map_in_threads(workers, bend, longest_first), strict=True))
    return [made[i] for i in range(len(utterances))]


def _set_level(output: Floats, original: Samples, level: Level) -> Samples:
    """Scaled, in place, and truncated toward zero to int16; an output of zeros stays zeros."""
    peak = max(output.max(initial=0.0), -output.min(initial=0.0))
    if peak == 0:
        return np.zeros(output.size, np.int16)
    output /= peak
    output *= PEAK
    if level == "kept":
        output *= min(1.0, _loudness(original) / _loudness(output))
    quantised: Samples = output.astype(np.int16)
    return quantised


def _loudness(sound: Floats | Samples) -> float:
    """Return root mean square, block by block: the squares of two hours at once would take a gigabyte."""
    blocks = (sound[start : start + _BLOCK_SAMPLES] for start in range(0, sound.size, _BLOCK_SAMPLES))
    return math.sqrt(sum(float(np.square(block, dtype=np.float64).sum()) for block in blocks) / sound.size)


def official_options(edition: Edition) -> dict[str, OptionValue]:
    """Return options under which the method of an edition does all that the official program does, defects included.

    What is left of 2020: that program wrote float samples, which sox then dithered to 16 bits; ours are truncated.
    """
    return {
        "level": "peak",
        "keep_digital_silence": False,
        "first_frame": edition == 2024,
        "tail": False,
        **({"alpha": _ALPHA_2020} if edition == 2020 else {}),
    }


@dataclass(frozen=True)
class _McAdamsMethod(Method):
    """A `Method` that filters the utterances of a batch together."""

    def anonymize_batch(
        self, items: Sequence[VoicedUtterance], rate: int, *, options: Options | None = None, threads: int = 1
    ) -> list[Samples]:
        for item in items:
            validate_voice(self, item.pseudo_speaker)
        chosen = complete_options(self, options)
        parameters = [_read_parameters(item.pseudo_speaker.parameters, chosen) for item in items]
        return mcadams_batch([item.samples for item in items], rate, parameters, threads=threads)


def _read_parameters(voice: Mapping[str, float], options: Options) -> McAdamsParameters:
    """The options are named as in `McAdamsParameters`; alpha is the voice's, or the option of one voice for all."""
    alpha = voice["alpha"] if "alpha" in voice else options["alpha"]
    return McAdamsParameters(**{**options, "alpha": alpha})  # type: ignore[arg-type]


def _process(samples: Samples, rate: int, voice: Mapping[str, float], options: Options, threads: int) -> Samples:
    return mcadams(samples, rate, _read_parameters(voice, options), threads=threads)


METHODS = tuple(_McAdamsMethod(**about, process=_process) for about in read_methods(__file__))
