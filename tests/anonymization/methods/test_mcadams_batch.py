"""Batches of utterances through B2: the same as one by one, for any number of threads, in bounded memory."""

import tracemalloc

import numpy as np
import pytest

from anonymization.methods.contract import MethodError, PseudoSpeaker, VoicedUtterance
from anonymization.methods.mcadams.method import METHODS, mcadams, mcadams_batch
from anonymization.methods.mcadams.parameters import McAdamsParameters

LENGTHS = [3000, 0, 480, 20_000, 100, 481, 16_000]
ALPHAS = np.linspace(0.5, 0.89, len(LENGTHS))
BY_NAME = {method.name: method for method in METHODS}


def noise(n):
    return np.random.default_rng(n).normal(0, 1000, n).astype(np.int16)


def make_items():
    return [
        VoicedUtterance(noise(n), PseudoSpeaker(str(n), {"alpha": float(alpha)}))
        for n, alpha in zip(LENGTHS, ALPHAS, strict=True)
    ]


def test_batch_equals_one_by_one_for_any_number_of_threads():
    method = BY_NAME["mcadams-2024"]
    options = {"level": "kept", "tail": True}
    outputs = method.anonymize_batch(make_items(), 16_000, options=options, threads=3)
    assert len(outputs) == len(LENGTHS)
    for item, output in zip(make_items(), outputs, strict=True):
        expected = method.anonymize(item.samples, 16_000, item.pseudo_speaker, options=options)
        assert output.tobytes() == expected.tobytes()


def test_batch_needs_memory_for_few_utterances_beside_its_output():
    """Twelve utterances take less than two of them would."""
    utterances = [noise(30_000)] * 12
    parameters = [McAdamsParameters(0.8)] * len(utterances)
    mcadams(utterances[0][:1000], 16_000, parameters[0])
    peaks = []
    for count in (1, len(utterances)):
        tracemalloc.start()
        outputs = mcadams_batch(utterances[:count], 16_000, parameters[:count])
        peaks.append(tracemalloc.get_traced_memory()[1] - sum(output.nbytes for output in outputs))
        tracemalloc.stop()
    assert peaks[1] < 2 * peaks[0]


def test_utterances_of_a_batch_differ_in_alpha_alone():
    with pytest.raises(MethodError, match="may differ in alpha alone"):
        mcadams_batch(
            [noise(500)] * 2, 16_000, [McAdamsParameters(0.8), McAdamsParameters(0.8, keep_digital_silence=False)]
        )
    with pytest.raises(MethodError, match="found 2 utterances and 1 parameters"):
        mcadams_batch([noise(500)] * 2, 16_000, [McAdamsParameters(0.8)])
