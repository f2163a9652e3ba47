"""Torch and products at one thread until the last of several calls has ended; which engines use a graphics card, and
what happens where it fails. There is no card here: doubles stand for what CTranslate2 and a load on a card would say.
"""

import logging

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from common.errors import InputError
from speech.encoders import registry as encoders
from speech.model_files.devices import (
    choose_device,
    load_where_it_can,
    runs_on_card,
    use_one_thread_for_products,
    use_torch_threads,
)
from speech.recognizers import registry as recognizers

torch = pytest.importorskip("torch")
WHISPER = ("faster_whisper", "ctranslate2")
ENGINES = [engine for registry in (encoders, recognizers) for engine in registry.engines().values()]


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_last_of_several_calls_gives_the_threads_back(two_threads):
    first, second = use_torch_threads(1), use_torch_threads(1)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert torch.get_num_threads() == 1
    second.__exit__(None, None, None)
    assert torch.get_num_threads() == 2


def count_product_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_products_go_back_to_their_threads_after_the_last_of_several_calls():
    with threadpool_limits(2, user_api="blas"):
        first, second = use_one_thread_for_products(), use_one_thread_for_products()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert count_product_threads() == {1}
        second.__exit__(None, None, None)
        assert count_product_threads() == {2}


@pytest.fixture
def card(monkeypatch):
    """As CTranslate2 would tell of one."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    monkeypatch.setattr(ctranslate2, "get_cuda_device_count", lambda: 1)


def test_engines_of_torch_onnxruntime_and_ctranslate2_have_a_form_for_a_card():
    assert {engine.name: runs_on_card(engine.packages) for engine in ENGINES} == {
        "wespeaker-resnet34": True,
        "ecapa-voxceleb": True,
        "ge2e": True,
        "long-term-spectrum": False,
        "moonshine-tiny": False,
        "whisper-base": True,
        "torchaudio-wav2vec2": True,
    }


@pytest.mark.parametrize("engine", [one for one in ENGINES if not runs_on_card(one.packages)], ids=lambda one: one.name)
def test_engine_without_a_form_for_a_card_refuses_one(engine):
    with pytest.raises(InputError, match="Choose the device “cpu”"):
        engine.load("cuda")


def test_ctranslate2_is_asked_for_a_card(card, monkeypatch):
    assert choose_device(WHISPER) == "cuda"
    monkeypatch.setattr("ctranslate2.get_cuda_device_count", lambda: 0)
    assert choose_device(WHISPER) == "cpu"
    assert choose_device(("moonshine_voice",)) == choose_device(()) == "cpu"


def test_model_that_fails_on_a_card_is_loaded_on_the_processor_with_a_line_of_log(card, caplog):
    tried, error = [], RuntimeError("CUDA out of memory.")

    def load(device):
        tried.append(device)
        if device == "cuda":
            raise error
        return device

    with caplog.at_level(logging.WARNING):
        assert load_where_it_can(load, WHISPER, "Whisper base") == "cpu"
    assert tried == ["cuda", "cpu"]
    assert caplog.messages == [f"Whisper base works on the processor; the graphics card cannot be used: {error}"]


def test_model_that_works_on_a_card_stays_there_and_one_that_fails_everywhere_says_why(card, caplog):
    assert load_where_it_can(lambda device: device, WHISPER, "Whisper base") == "cuda"
    assert not caplog.messages

    def fail(device):
        raise InputError(f"No model for {device}.")

    with pytest.raises(InputError, match="No model for cpu"):
        load_where_it_can(fail, WHISPER, "Whisper base")
