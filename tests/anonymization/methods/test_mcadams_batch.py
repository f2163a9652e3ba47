"""Batches of utterances through B2: the same as one by one, for any number of threads, in bounded memory."""

import tracemalloc

import numpy as np
import pytest

from anonymization.methods.contract import Item, MethodError, PseudoSpeaker
from anonymization.methods.mcadams.method import METHODS, mcadams, mcadams_batch
from anonymization.methods.mcadams.parameters import McAdamsParameters

LENGTHS = [3000, 0, 480, 20_000, 100, 481, 16_000]
ALPHAS = np.linspace(0.5, 0.89, len(LENGTHS))
BY_NAME = {method.name: method for method in METHODS}


def noise(n):
    return np.random.default_rng(n).normal(0, 1000, n).astype(np.int16)


def make_items():
    return [
        Item(noise(n), PseudoSpeaker(str(n), {"alpha": float(alpha)})) for n, alpha in zip(LENGTHS, ALPHAS, strict=True)
    ]


@pytest.mark.parametrize("threads", [1, 2, 3, 20])
@pytest.mark.parametrize("edition", [2022, 2024])
def test_batch_equals_one_by_one_for_any_number_of_threads(edition, threads):
    method = BY_NAME[f"mcadams-{edition}"]
    options = {"level": "kept", "tail": True}
    outputs = method.anonymize_batch(make_items(), 16_000, options=options, threads=threads)
    assert len(outputs) == len(LENGTHS)
    for item, output in zip(make_items(), outputs, strict=True):
        expected = method.anonymize(item.samples, 16_000, item.pseudo_speaker, options=options)
        assert output.tobytes() == expected.tobytes()


def test_batch_of_2020_needs_no_parameters():
    items = [Item(noise(n), PseudoSpeaker("00", {})) for n in LENGTHS]
    outputs = BY_NAME["mcadams-2020"].anonymize_batch(items, 16_000, options={"alpha": 0.7}, threads=2)
    for item, output in zip(items, outputs, strict=True):
        assert np.array_equal(output, mcadams(item.samples, 16_000, McAdamsParameters(0.7)))


def test_single_utterance_is_shared_among_all_threads(vowels):
    item = Item(vowels, PseudoSpeaker("00", {"alpha": 0.6}))
    (output,) = BY_NAME["mcadams-2022"].anonymize_batch([item], 16_000, threads=4)
    assert np.array_equal(output, mcadams(vowels, 16_000, McAdamsParameters(0.6)))


def test_empty_batch_gives_an_empty_list():
    assert BY_NAME["mcadams-2022"].anonymize_batch([], 16_000) == []


def test_batch_needs_memory_for_few_utterances_beside_its_output():
    """Twelve utterances take less than two of them would."""
    utterances = [noise(100_000)] * 12
    parameters = [McAdamsParameters(0.8)] * len(utterances)
    mcadams(utterances[0][:1000], 16_000, parameters[0])
    peaks = []
    for count in (1, len(utterances)):
        tracemalloc.start()
        outputs = mcadams_batch(utterances[:count], 16_000, parameters[:count])
        peaks.append(tracemalloc.get_traced_memory()[1] - sum(output.nbytes for output in outputs))
        tracemalloc.stop()
    assert peaks[1] < 2 * peaks[0]


def test_voice_that_does_not_fit_is_refused_before_any_work():
    items = [*make_items(), Item(noise(100), PseudoSpeaker("00", {"alpha": 0.95}))]
    with pytest.raises(MethodError, match=r"alpha of mcadams-2022 must be from 0.5 to 0.9; found 0.95"):
        BY_NAME["mcadams-2022"].anonymize_batch(items, 16_000)


@pytest.mark.parametrize(
    ("samples", "rate", "sentence"),
    [(np.zeros(800, np.float32), 16_000, "found float32"), (np.zeros(800, np.int16), 8000, "found 8000 Hz")],
)
def test_unusable_utterance_of_a_batch_is_refused(samples, rate, sentence):
    voice = PseudoSpeaker("00", {"alpha": 0.6})
    with pytest.raises(MethodError, match=sentence):
        BY_NAME["mcadams-2022"].anonymize_batch([Item(noise(500), voice), Item(samples, voice)], rate)


def test_utterances_of_a_batch_differ_in_alpha_alone():
    with pytest.raises(MethodError, match="may differ in alpha alone"):
        mcadams_batch(
            [noise(500)] * 2, 16_000, [McAdamsParameters(0.8), McAdamsParameters(0.8, keep_digital_silence=False)]
        )
    with pytest.raises(MethodError, match="found 2 utterances and 1 parameters"):
        mcadams_batch([noise(500)] * 2, 16_000, [McAdamsParameters(0.8)])
